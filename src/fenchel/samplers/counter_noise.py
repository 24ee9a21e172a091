"""Normal noise as a function of a key and a counter, in arithmetic that any kernel can do.

Within a GPU kernel there are no random keys. Threefry with twenty rounds (Salmon et al., 2011), the
generator behind those keys, needs only additions, shifts and exclusive ors.
"""

import jax.numpy as jnp
import numpy as np

from fenchel.shapes import Array

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)


def threefry(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two words of random bits for every counter."""
    keys = (*key, key[0] ^ key[1] ^ PARITY)
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for rotation in ROTATIONS[block % 2]:
            a = a + b
            b = _rotated(b, rotation) ^ a
        a, b = a + keys[(block + 1) % 3], b + keys[(block + 2) % 3] + np.uint32(block + 1)
    return a, b


def normal(key: tuple[Array, Array], counter: tuple[Array, Array]) -> Array:
    """A standard normal number for every counter, by Box and Muller."""
    a, b = threefry(key, counter)
    radius = jnp.sqrt(-2 * jnp.log(_uniform(a) + np.float32(2**-25)))
    return radius * jnp.cos(np.float32(2 * np.pi) * _uniform(b))


def _uniform(bits: Array) -> Array:
    """In [0, 1), on a grid of 2^24."""
    return (bits >> np.uint32(8)).astype(jnp.float32) * np.float32(2**-24)


def _rotated(bits: Array, by: int) -> Array:
    return (bits << np.uint32(by)) | (bits >> np.uint32(32 - by))
