"""Seeds as people give them, and keys made of them."""

import operator
from typing import Any

import jax

from fenchel.errors import InputError
from fenchel.shapes import Key

SEEDS = 2**32  # in single precision JAX looks at 32 bits, and takes others for smaller ones


def key_of(seed: Any) -> Key:
    """The key of a checked seed."""
    return jax.random.key(check_seed(seed))


def apart(seed: int, offset: int) -> int:
    """Another seed, so far from this one that nobody fits with both."""
    return (seed + offset) % SEEDS


def check_seed(seed: Any) -> int:
    """A seed, or an error that says which there are."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < SEEDS or isinstance(seed, bool):
        raise InputError(f"The seed is {seed!r}: give a whole number from 0 to {SEEDS - 1:,}.")
    return number
