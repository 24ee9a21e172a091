"""The residual start: its density against autodiff, and that it can always be undone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import stats

from fenchel.dynamics import CentredNormal, ChebyshevLogDet, Rademacher
from fenchel.errors import InputError
from fenchel.stacking import unstack
from fenchel.starts import Contraction, Residual, residual

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(2)


def start(**options):
    return paramax.unwrap(residual(3, CentredNormal(0), 4, 1.3, 16, 2, key=KEY, **options))


@eqx.filter_jit
def drawn_again(q0):
    """A draw with its density, and that density from the point alone."""
    x, _, log_q = q0.draw(jnp.zeros(3), None, KEY)
    return x, log_q, q0.log_density(x)


def test_density_against_the_jacobian_of_the_whole_map():
    @eqx.filter_jit
    def drawn_and_by_hand(q0):
        def whole(noise):
            for index in range(4):
                noise = noise + q0.step * unstack(q0.layers, index)(noise)
            return noise

        noise = 1.3 * jax.random.normal(jax.random.split(KEY, 3)[0], (3,))
        return drawn_again(q0), noise, whole(noise), jax.jacfwd(whole)(noise)

    (x, log_q, again), noise, moved, jacobian = drawn_and_by_hand(start())
    np.testing.assert_allclose(moved, x, atol=1e-12)
    base = stats.norm.logpdf(noise, scale=1.3).sum()
    log_det = np.linalg.slogdet(jacobian)[1]
    assert log_q == pytest.approx(base - log_det, abs=1e-10)
    assert abs(log_det) > 0.1  # there was something to get wrong
    assert again == pytest.approx(float(log_q), abs=1e-8)


def test_it_can_be_undone_whatever_is_learnt():
    wild = jax.tree.map(lambda leaf: 50 * leaf, start().layers)
    q0 = eqx.tree_at(lambda q: q.layers, start(), wild)
    x, log_q, again = drawn_again(q0)
    assert again == pytest.approx(float(log_q), abs=1e-6)
    net = unstack(wild, 0)
    assert np.linalg.norm(jax.jit(jax.jacfwd(net))(x), 2) < 1


def test_gradients_of_its_density_pass_through_the_inverse():
    """What the anchor needs: against finite differences of the start's own parameters."""
    x, q0 = jnp.array([0.4, -0.8, 0.2]), start()
    params, static = eqx.partition(q0.layers, eqx.is_array)
    direction = jax.tree.map(lambda leaf: np.cos(np.arange(leaf.size)).reshape(leaf.shape), params)

    @jax.jit
    @jax.value_and_grad
    def value(t):
        moved = jax.tree.map(lambda p, d: p + t * d, params, direction)
        return eqx.tree_at(lambda q: q.layers, q0, eqx.combine(moved, static)).log_density(x)

    slope = (value(1e-5)[0] - value(-1e-5)[0]) / 2e-5
    assert value(0.0)[1] == pytest.approx(float(slope), rel=1e-5)


def test_stochastic_log_determinants_say_that_they_are_not_exact():
    q0 = start(log_det=ChebyshevLogDet(12, Rademacher(4)))
    assert not q0.exact
    assert start().exact

    @eqx.filter_jit
    def misses(q0, exact):
        one = lambda key: q0.draw(jnp.zeros(3), None, key)  # noqa: E731
        x, _, log_q = jax.vmap(one)(jax.random.split(KEY, 200))
        return log_q - jax.vmap(exact.log_density)(x)

    error = np.asarray(misses(q0, start()))
    # By chance once in 16,000.
    assert abs(np.mean(error)) < 4 * np.std(error) / 200**0.5


@pytest.mark.parametrize("step", [0.0, 1.0, -0.3])
def test_steps_that_could_fold_are_refused(step):
    with pytest.raises(InputError, match="between 0 and 1"):
        Residual(Contraction(2, 4, 1, key=KEY), CentredNormal(0), step=step)
