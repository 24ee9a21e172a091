"""Nets from a latent variable to a picture: the paper's, and a residual one."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.activations import leaky_relu
from fenchel.layers import Convolution, Dense, Doubling, OfDoubled, Wrap, doubled, plain
from fenchel.shapes import Array, Key, Point
from fenchel.starts.batch_norm import AbstractSettling, BatchNorm, Layer, settled_in_turn

Shape = tuple[int, int, int]
SMALLEST = 4  # pixels on a side, at which a picture begins


class Folded(eqx.Module):
    """A vector as a small picture."""

    shape: Shape = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        return x.reshape(self.shape)


class DoublingBlock(AbstractSettling):
    """y = shortcut(x) + conv(act(norm(conv(doubled(act(norm(x))))))), twice as large."""

    layers: tuple[Layer, ...]
    shortcut: Convolution

    def __init__(self, inputs: int, outputs: int, wrap: Wrap, *, key: Key):
        keys = jax.random.split(key, 3)
        self.layers = (
            BatchNorm(inputs),
            jax.nn.relu,
            OfDoubled(Convolution(inputs, outputs, 3, wrap, key=keys[0])),
            BatchNorm(outputs),
            jax.nn.relu,
            Convolution(outputs, outputs, 3, wrap, key=keys[1]),
        )
        self.shortcut = Convolution(inputs, outputs, 1, wrap, key=keys[2])

    def __call__(self, x: Array) -> Array:
        return _through(self.layers, x) + doubled(self.shortcut(x))

    def settled(self, batch: Array) -> "DoublingBlock":
        return eqx.tree_at(lambda b: b.layers, self, settled_in_turn(self.layers, batch))


class Generator(eqx.Module):
    """z to the mean of a picture's pixels, in (-1, 1), and to what their deviation comes from."""

    layers: tuple[Layer, ...]

    def __call__(self, z: Array) -> tuple[Point, Point]:
        mean, spread = jnp.split(_through(self.layers, z).astype(z.dtype), 2, axis=-1)
        return jnp.tanh(mean).ravel(), spread.ravel()

    def settled(self, z: Array) -> "Generator":
        """With the statistics of these latent variables from now on."""
        return Generator(settled_in_turn(self.layers, z))


def deconvolutional(
    shape: Shape, latent: int, width: int = 64, wrap: Wrap = plain, *, key: Key
) -> Generator:
    """The paper's: a dense layer, then doublings, each with a batch norm and a leaky ReLU.

    `width` is that before the last layer; it is doubled towards the latent variable.
    """
    count = _doublings(shape)
    keys = jax.random.split(key, count + 2)
    widths = [width * 2**power for power in range(count, -1, -1)]
    layers = list(_seed(shape, latent, widths[0], wrap, keys[0]))
    for index in range(count):
        layers += [Doubling(widths[index], widths[index + 1], wrap, key=keys[1 + index])]
        layers += [BatchNorm(widths[index + 1]), leaky_relu]
    return Generator((*layers, _last(widths[-1], shape, keys[-1])))


def residual_generator(
    shape: Shape, latent: int, width: int = 256, wrap: Wrap = plain, *, key: Key
) -> Generator:
    """A dense layer, then residual blocks that double, all of one width."""
    count = _doublings(shape)
    keys = jax.random.split(key, count + 2)
    blocks = [DoublingBlock(width, width, wrap, key=keys[1 + index]) for index in range(count)]
    end = (BatchNorm(width), jax.nn.relu, _last(width, shape, keys[-1]))
    return Generator((*_seed(shape, latent, width, wrap, keys[0]), *blocks, *end))


def _seed(shape: Shape, latent: int, width: int, wrap: Wrap, key: Key) -> tuple[Layer, ...]:
    small = (shape[0] >> _doublings(shape), shape[1] >> _doublings(shape), width)
    return Dense(latent, small[0] * small[1] * width, wrap, key=key), Folded(small)


def _last(width: int, shape: Shape, key: Key) -> Convolution:
    """Means and deviations; small at first, so that pixels begin away from the ends of tanh."""
    return Convolution(width, 2 * shape[-1], 3, lambda weight, _: 0.1 * weight, key=key)


def _doublings(shape: Shape) -> int:
    """How often a picture can be halved."""
    count, sides = 0, list(shape[:2])
    while all(side % 2 == 0 and side // 2 >= SMALLEST for side in sides):
        count, sides = count + 1, [side // 2 for side in sides]
    return count


def _through(layers: Sequence[Layer], x: Array) -> Array:
    for layer in layers:
        x = layer(x)
    return x
