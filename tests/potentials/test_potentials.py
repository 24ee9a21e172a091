"""Potentials against SciPy, against their integrals, and inside a sampler."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from fenchel.dynamics import CentredNormal, Options, hmc
from fenchel.errors import InputError
from fenchel.parameters import learnt
from fenchel.potentials import MLP, DiagonalGaussian, FullGaussian, GaussianBase, Linear, OnBase
from fenchel.samplers import Embedding
from fenchel.starts import Empirical

pytestmark = pytest.mark.usefixtures("x64")

MEAN = (0.5, -0.3)
PRECISION = ((2.0, 0.6), (0.6, 1.5))


def diagonal():
    return DiagonalGaussian(jnp.array(MEAN), jnp.log(jnp.array([2.0, 0.7])))


def full():
    return FullGaussian.from_precision(jnp.array(MEAN), jnp.array(PRECISION))


GAUSSIANS = {
    "diagonal": (diagonal, np.diag([1 / 2.0, 1 / 0.7])),
    "full": (full, np.linalg.inv(PRECISION)),
}


def log_integral(f, half_width, points=201, dim=2):
    """log of the integral of exp f over a cube, by the rectangle rule."""
    axis = np.linspace(-half_width, half_width, points)
    grid = np.stack(np.meshgrid(*[axis] * dim), axis=-1).reshape(-1, dim)
    values = np.asarray(jax.jit(jax.vmap(f))(grid))
    return special.logsumexp(values) + dim * np.log(axis[1] - axis[0])


@pytest.mark.parametrize("name", GAUSSIANS)
class TestGaussians:
    def test_normalised_it_is_scipys(self, name):
        make, covariance = GAUSSIANS[name]
        points = np.random.default_rng(0).normal(size=(5, 2))
        ours = jax.vmap(make())(points) - make().log_partition()
        exact = stats.multivariate_normal(MEAN, covariance).logpdf(points)
        np.testing.assert_allclose(ours, exact, atol=1e-12)

    def test_log_partition_is_the_integral(self, name):
        f = GAUSSIANS[name][0]()
        np.testing.assert_allclose(log_integral(f, 10.0), f.log_partition(), atol=1e-9)


def test_full_gaussian_keeps_its_precision():
    factor = np.random.default_rng(1).normal(size=(4, 4))
    precision = jnp.asarray(factor @ factor.T + np.eye(4))
    np.testing.assert_allclose(
        FullGaussian.from_precision(jnp.zeros(4), precision).precision, precision, atol=1e-12
    )


def test_full_gaussian_ignores_what_is_above_the_diagonal():
    f = full()
    other = eqx.tree_at(lambda f: f.factor, f, f.factor.at[0, 1].set(7.0))
    x = jnp.array([0.2, 1.0])
    assert other(x) == f(x)
    assert np.array_equal(other.precision, f.precision)


class TestLinear:
    @staticmethod
    def statistics(x):
        return jnp.array([x[0], x[0] * x[1], x[1] ** 4])

    def test_value(self):
        f = Linear(self.statistics, 2, weights=jnp.array([1.0, -2.0, 0.5]))
        assert f(jnp.array([3.0, 2.0])) == pytest.approx(3.0 - 12.0 + 8.0)

    def test_starts_from_zero_and_learns_its_weights_only(self):
        f = Linear(self.statistics, 2)
        assert f(jnp.ones(2)) == 0
        assert [leaf.shape for leaf in jax.tree.leaves(learnt(f))] == [(3,)]
        gradient = eqx.filter_grad(lambda f, x: f(x))(f, jnp.array([3.0, 2.0]))
        np.testing.assert_allclose(gradient.weights, [3.0, 6.0, 16.0])

    def test_whole_numbers_as_weights_are_learnt_too(self):
        f = Linear(self.statistics, 2, weights=[1, 2, 3])
        assert [leaf.shape for leaf in jax.tree.leaves(learnt(f))] == [(3,)]

    def test_scalar_statistic(self):
        f = Linear(lambda x: jnp.sum(x**2), 3, names=["energy"], weights=jnp.array([-0.5]))
        assert f(jnp.ones(3)) == pytest.approx(-1.5)
        assert f.parameters == {"energy": -0.5}

    def test_names(self):
        assert Linear(self.statistics, 2).names == ("w1", "w2", "w3")
        f = Linear(self.statistics, 2, ["a", "b", "c"], jnp.array([1.0, 0.0, 2.0]))
        assert f.parameters == {"a": 1.0, "b": 0.0, "c": 2.0}

    @pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c", "d"], ["a", "b", "a"]])
    def test_names_that_do_not_fit(self, names):
        with pytest.raises(InputError, match=r"There are 3 statistics .* give each its own name"):
            Linear(self.statistics, 2, names)

    def test_statistics_that_are_no_vector(self):
        with pytest.raises(InputError, match=r"have shape \(2, 2\): return a vector"):
            Linear(lambda x: jnp.outer(x, x), 2)


@pytest.mark.parametrize(("activation", "smooth"), [(jax.nn.silu, True), (jax.nn.relu, False)])
def test_only_a_smooth_net_has_a_hessian(activation, smooth):
    f = MLP(2, 8, 2, activation, key=jax.random.key(0))
    points = np.random.default_rng(0).normal(size=(16, 2))
    both = jax.jit(jax.vmap(lambda x: (jax.grad(f)(x), jax.hessian(f)(x))))
    gradients, hessians = both(points)
    assert np.any(gradients != 0)  # neither net is constant
    largest = np.abs(hessians).max(axis=(1, 2))
    assert np.all(largest > 1e-3) if smooth else np.all(largest == 0)


class TestBaseMeasure:
    @pytest.mark.parametrize("dim", [1, 2])
    @pytest.mark.parametrize("scale", [0.7, 2.0])
    def test_the_base_is_normalised(self, scale, dim):
        base = GaussianBase(scale)
        np.testing.assert_allclose(log_integral(base, 10 * scale, dim=dim), 0.0, atol=1e-9)
        x = np.linspace(-1, 2, dim)
        exact = stats.norm(scale=scale).logpdf(x).sum()
        np.testing.assert_allclose(base(jnp.asarray(x)), exact, atol=1e-12)

    def test_on_a_zero_net_it_is_the_base(self):
        net = jax.tree.map(
            lambda leaf: jnp.zeros_like(leaf) if eqx.is_array(leaf) else leaf,
            MLP(2, 8, 2, key=jax.random.key(0)),
        )
        np.testing.assert_allclose(log_integral(OnBase(net), 20.0), 0.0, atol=1e-9)

    def test_it_makes_a_net_integrable(self):
        net = MLP(2, 8, 2, key=jax.random.key(0))
        near, far = (log_integral(OnBase(net), half_width, 401) for half_width in (60.0, 90.0))
        assert np.isfinite(near)
        np.testing.assert_allclose(near, far, atol=1e-3)
        # The net alone is not: its integral grows with the square that it is taken over.
        assert log_integral(net, 90.0, 401) > log_integral(net, 60.0, 401) + 5.0

    def test_base_is_not_learnt_and_any_other_will_do(self):
        assert jax.tree.leaves(learnt(GaussianBase())) == []
        f = OnBase(lambda x: x[0], lambda x: -jnp.sum(jnp.abs(x)))
        assert f(jnp.array([2.0, -3.0])) == pytest.approx(2.0 - 5.0)


def quartic(x, strength=0.25):
    return -strength * jnp.sum(x**4)


class Quartic:
    def __call__(self, x):
        return quartic(x)


@pytest.mark.parametrize(
    "f",
    [
        quartic,
        lambda x: -0.25 * jnp.sum(x**4),
        functools.partial(quartic, strength=0.25),
        Quartic(),
        Linear(lambda x: jnp.sum(x**4), 2, weights=[-0.25]),
    ],
    ids=["function", "lambda", "partial", "object", "module"],
)
def test_any_callable_is_a_potential(f):
    sampler = Embedding(Empirical(CentredNormal(2)), hmc(2, Options(steps=2), jax.random.key(0)))
    points = jnp.array([[-1.0, 0.5], [0.2, 1.0]])
    with jax.disable_jit():  # to compile takes far longer than to run once
        particles, _ = sampler.draw(f, points, None, jax.random.key(1))
    np.testing.assert_allclose(particles.f, -0.25 * jnp.sum(particles.x**4, axis=1), rtol=1e-5)
    np.testing.assert_allclose(particles.score, -(particles.x**3), rtol=1e-4)
    assert not np.allclose(particles.x, points)
