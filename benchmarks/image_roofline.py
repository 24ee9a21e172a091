"""How long an iteration on pictures must take at least: its operations over the device's peak.

Counted from the layers' shapes, multiplications and additions apart, and only what no
implementation can leave out: convolutions and matrix products. With F the operations of f at one
picture, a pass back to the picture costs F once more, and a gradient of the weights F again.

- A draw of T steps needs T + 1 scores, each forward and back to the picture: 2 F. The last of them
  is where the draws are valued, and what the sampler learns from.
- f's own step adds the data, forward and back, and the gradients of the weights at both.
- The generator, of G operations, goes forward, back, and has gradients of its weights: about 3 G.
- A penalty on slopes, at half of data and draws, is a score and its derivative for each: 4 F.
- Where f learns from pairs, its sampler needs a pass back of its own: F.
- Back-propagation through time adds, for each step, the derivative of a score. Each of its 2 F has
  two factors, so that in general it costs 4 F, three times the trajectory in all (`curved`). But f
  is piecewise linear: its score knows x by the signs of the leaky ReLUs alone, so that only the
  pass back is left to be differentiated: 2 F, twice the trajectory. That is what is counted.
"""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax import lax

from fenchel.build import Parts
from fenchel.config import Config
from fenchel.layers import Convolution, Dense, Doubling, OfDoubled
from fenchel.potentials import ConvNet, ResidualNet
from fenchel.shapes import PyTree
from fenchel.starts.generator import DoublingBlock, Folded, Generator

# Dense bfloat16, by the makers' data sheets, in operations a second.
DATA_SHEETS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}
PRODUCTS = 20  # in a row, for the measured peak
ATTEMPTS = 3


class Layer(NamedTuple):
    """A convolution, or a product.

    At so many pixels, from this many numbers at each of a window to this many.
    """

    pixels: int
    window: int
    inputs: int
    outputs: int

    @property
    def operations(self) -> int:
        return 2 * self.pixels * self.window * self.inputs * self.outputs


def potential_layers(net: ConvNet | ResidualNet) -> list[Layer]:
    """The convolutions of f, in their order."""
    pixels = net.shape[0] * net.shape[1]
    if isinstance(net, ConvNet):  # halves a picture after its second and its fourth
        shares = (1, 1, 4, 4, 16)
        return [
            _at(pixels // share, layer) for share, layer in zip(shares, net.layers, strict=True)
        ]
    layers = [_at(pixels, net.first)]
    for block in net.blocks:
        layers.append(_at(pixels, block.first))
        pixels //= 4 if block.halves else 1
        layers.append(_at(pixels, block.second, seen_by_four=block.halves))
        layers += [] if block.shortcut is None else [_at(pixels, block.shortcut)]
    return layers


def _at(pixels: int, layer: Convolution, seen_by_four: bool = False) -> Layer:
    """Where the size changes beside it, a kernel larger by one is enough, once for four pixels."""
    height, width, inputs, outputs = _unwrapped(layer).weight.shape
    more = int(seen_by_four)
    return Layer(pixels, (height + more) * (width + more), inputs, outputs)


def generator_layers(generator: Generator) -> list[Layer]:
    """A dense layer, doublings (every pixel becomes four), a last convolution."""
    pixels, layers = 1, []
    for layer in map(_unwrapped, generator.layers):
        if isinstance(layer, DoublingBlock):
            layers.append(_at(pixels, layer.shortcut))
            for own in layer.layers:
                if isinstance(own, OfDoubled):
                    layers.append(_at(pixels, own.convolution, seen_by_four=True))
                if isinstance(own, Convolution):
                    layers.append(_at(4 * pixels, own))
            pixels *= 4
        if isinstance(layer, Folded):
            pixels = layer.shape[0] * layer.shape[1]
        if isinstance(layer, Dense | Doubling):
            layers.append(Layer(pixels, 1, *layer.weight.shape))
        if isinstance(layer, Doubling):
            pixels *= 4
        if isinstance(layer, Convolution):
            layers.append(_at(pixels, layer))
    return layers


def operations(config: Config, parts: Parts, curved: bool = False) -> dict[str, int]:
    """Of one iteration, by what they are for."""
    f = potential_layers(parts.potential.potential)
    g = generator_layers(parts.sampler.start.generator)
    once, made = (sum(layer.operations for layer in layers) for layers in (f, g))
    steps, batch = config.dynamics.steps, config.training.batch
    counts = {
        "scores": (steps + 1) * 2 * once,
        "data": 2 * once - f[0].operations,  # nobody asks for a gradient at the data,
        "weights": 2 * once,
        "generator": 3 * made - g[0].operations,  # nor at the latent variable
    }
    if config.training.gradient_penalty:
        counts["penalty"] = (6 if curved else 4) * once
    if config.training.bound == "pairs":
        counts["pairs"] = once
    if config.training.gradient == "bptt":
        counts["through_time"] = steps * (4 if curved else 2) * once
    return {name: batch * count for name, count in counts.items()}


def data_sheet_peak() -> float | None:
    """Where the device's is known."""
    kind = jax.devices()[0].device_kind
    return next((peak for name, peak in DATA_SHEETS.items() if name in kind), None)


def measured_peak(size: int) -> float:
    """Operations a second of large bfloat16 products of random matrices, at the best attempt."""
    keys = jax.random.split(jax.random.key(0))
    a, b = (jax.random.normal(key, (size, size), jnp.bfloat16) for key in keys)
    b = b / size**0.5  # so that products stay as large as they were

    @jax.jit
    def products(a, b):
        return lax.fori_loop(0, PRODUCTS, lambda _, a: a @ b, a)

    products(a, b).block_until_ready()
    times = []
    for _ in range(ATTEMPTS):
        began = time.perf_counter()
        products(a, b).block_until_ready()
        times.append(time.perf_counter() - began)
    return 2 * size**3 * PRODUCTS / min(times)


def _unwrapped(tree: PyTree) -> PyTree:
    """Shapes alone, as the nets use them."""
    return eqx.filter_eval_shape(paramax.unwrap, tree)
