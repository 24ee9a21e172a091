import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.evidence import Chains, nuts

SCALES = np.array([0.5, 2.0])


def gaussian(x):
    return -0.5 * jnp.sum((x / jnp.asarray(SCALES, x.dtype)) ** 2)


@pytest.fixture(scope="module")
def chains() -> Chains:
    return nuts(gaussian, jnp.ones((4, 2)), ("a", "b"), jax.random.key(0), 300, 200)


def test_the_moments_are_the_targets(chains):
    # Means have standard error s / sqrt(effective draws): beyond 5 of them once in a million.
    error = SCALES / np.sqrt(chains.bulk_ess)
    assert np.all(np.abs(chains.flat.mean(axis=0)) < 5 * error)
    assert chains.flat.std(axis=0) == pytest.approx(SCALES, rel=0.15)


def test_chains_that_agree_have_converged(chains):
    assert chains.x.shape == (4, 300, 2)
    assert chains.r_hat.max() < 1.02
    assert chains.bulk_ess.min() > 300
    assert chains.divergences == 0


def test_chains_without_dependence_have_converged():
    x = np.random.default_rng(0).standard_normal((4, 500, 2))
    assert Chains(x, ("a", "b"), 0.9, 0).converged
    assert not Chains(x, ("a", "b"), 0.9, 3).converged  # 2,000 draws may have 2 divergences


def test_chains_that_stay_apart_have_not(chains):
    apart = Chains(chains.x + 3 * np.arange(4)[:, None, None], chains.names, 0.9, 0)
    assert apart.r_hat.min() > 1.1
    assert not apart.converged


def test_arviz_gets_a_variable_a_column(chains):
    tree = chains.to_arviz()
    assert tree["posterior"]["b"].shape == (4, 300)
    np.testing.assert_array_equal(tree["posterior"]["a"].values, chains.x[..., 0])


def test_one_chain_is_refused():
    with pytest.raises(InputError, match="at least"):
        nuts(gaussian, jnp.ones((1, 2)), ("a", "b"), jax.random.key(0), 100, 100)
