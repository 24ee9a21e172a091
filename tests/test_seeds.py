"""Seeds: which are taken, and that each is another key."""

import jax
import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.seeds import SEEDS, apart, check_seed, key_of


@pytest.mark.parametrize("seed", [0, 7, np.int32(7), SEEDS - 1])
def test_whole_numbers_are_taken(seed):
    assert check_seed(seed) == int(seed)
    key_of(seed)


@pytest.mark.parametrize("seed", [-1, SEEDS, 10**20, 1.0, "7", None, True])
def test_others_are_refused(seed):
    with pytest.raises(InputError, match="give a whole number from 0 to"):
        check_seed(seed)


@pytest.mark.parametrize("seed", [0, 5, SEEDS - 1])
def test_another_seed_is_a_seed_too(seed):
    assert check_seed(apart(seed, 2_000_003)) != seed


def test_seeds_are_keys_of_their_own():
    keys = [jax.random.key_data(key_of(seed)).tolist() for seed in (0, 1, 2**16, SEEDS - 1)]
    assert len({tuple(key) for key in keys}) == 4
