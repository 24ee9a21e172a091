"""Pictures on their way through a network: checked, enlarged, and a batch at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from fenchel.errors import InputError
from fenchel.evaluate.checks import check_at_least

SIZE = 299  # of the pictures that the Inception networks were trained on
GREY = 128.0  # is zero to them, and pixels are in units of it
BATCH = 256  # pictures; a network needs some 10 MiB for each

Pictures = UInt8[Array, "n height width channels"]
Network = Callable[[Pictures], Float[Array, "n d"]]
Progress = Callable[[int, int], None]
"""Is told after each batch how many pictures are done, and of how many."""

T = TypeVar("T")


def silent(done: int, total: int) -> None:
    """Progress that nobody hears of."""


def checked_pictures(pictures: np.ndarray) -> UInt8[np.ndarray, "n height width channels"]:
    """(n, height, width, 1 or 3) bytes, or an InputError; grey ones may come without channel."""
    pictures = np.asarray(pictures)
    if pictures.dtype != np.uint8:
        raise InputError(
            f"The pictures are of type {pictures.dtype}: round and clip them to whole numbers "
            "from 0 to 255, and give those as uint8."
        )
    with_channel = pictures[..., None] if pictures.ndim == 3 else pictures
    if with_channel.ndim != 4 or with_channel.size == 0 or with_channel.shape[-1] not in (1, 3):
        raise InputError(
            f"The pictures have shape {pictures.shape}: give (n, height, width) of grey ones, or "
            "(n, height, width, channels) with 1 or 3 channels."
        )
    return with_channel


def in_batches(
    network: Network, pictures: np.ndarray, batch: int, progress: Progress
) -> Iterator[Float[np.ndarray, "rows d"]]:
    """What `network` makes of the pictures, a batch at a time.

    The next batch is under way while the caller has this one, and all have one size, so that the
    network is compiled once.
    """
    pictures = checked_pictures(pictures)
    check_at_least(batch, 1, "batch")
    total, done = len(pictures), 0
    size = min(batch, total)
    parts = (_filled(pictures[i : i + size], size) for i in range(0, total, size))
    begun = (_run(network, jnp.asarray(part)) for part in parts)
    for rows in _one_ahead(begun):
        kept = np.asarray(rows)[: total - done]
        done += len(kept)
        progress(done, total)
        yield kept


@eqx.filter_jit
def _run(network: Network, pictures: Pictures) -> Float[Array, "n d"]:
    return network(pictures)


def _filled(pictures: np.ndarray, size: int) -> np.ndarray:
    missing = size - len(pictures)
    return np.pad(pictures, ((0, missing), (0, 0), (0, 0), (0, 0)))


def _one_ahead(items: Iterable[T]) -> Iterator[T]:
    """Each item, once the one after it has been asked for."""
    items = iter(items)
    current = next(items)
    for following in items:
        yield current
        current = following
    yield current


def prepared(pictures: Pictures) -> Float[Array, "n size size 3"]:
    """As both Inception networks want them: 299 x 299, three channels, from -1 to almost 1."""
    enlarged = _resized(_resized(pictures.astype(jnp.float32), axis=1), axis=2)
    return jnp.broadcast_to((enlarged - GREY) / GREY, (*enlarged.shape[:3], 3))


def _resized(pictures: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """One axis, interpolated as TensorFlow did at the time: pixel i is taken at i x old / new.

    (Today's libraries take it half a pixel off, (i + 1/2) x old / new - 1/2, and a Fréchet
    distance then comes out different by more than many a model.)
    """
    length = pictures.shape[axis]
    places = np.arange(SIZE, dtype=np.float32) * np.float32(length / SIZE)
    below = np.minimum(places.astype(int), length - 1)
    above = np.minimum(below + 1, length - 1)
    shape = [1] * pictures.ndim
    shape[axis] = SIZE
    share = jnp.asarray((places - below).reshape(shape), pictures.dtype)
    low, high = jnp.take(pictures, below, axis), jnp.take(pictures, above, axis)
    return low + (high - low) * share
