"""The kernel Stein discrepancy: by autodiff from its definition, and zero at the model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.estimators import GaussianKernel, InverseMultiquadric, KernelStein, SteinVariational

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(2)


def normal(x):
    return -0.5 * jnp.sum(x**2)


def bent(x):
    return jnp.array([[1.0 + 0.3 * x[1] ** 2, 0.2], [jnp.sin(x[0]), 1.5]])


SETTINGS = {
    "IMQ": KernelStein(InverseMultiquadric(0.8)),
    "RBF": KernelStein(GaussianKernel(1.2)),
    "general diffusion": KernelStein(InverseMultiquadric(), bent),
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_pairs_by_autodiff(name):
    """(1 / p(x) p(y)) div_x div_y of p(x) m(x) k(x, y) m(y)' p(y), for one pair of points."""
    stein = SETTINGS[name]

    def kernel(x, y):
        u = jnp.sum((x - y) ** 2) / stein.kernel.scale**2
        return stein.kernel.profile(u)

    def matrix(x, y):
        value = kernel(x, y) * jnp.exp(normal(x) + normal(y))
        return value * stein.diffusion(x) @ stein.diffusion(y).T

    def divergence_in_x(x, y):  # a vector, over the second index
        return jnp.einsum("iji->j", jax.jacfwd(matrix, 0)(x, y))

    @jax.jit
    def by_autodiff_and_ours(x, y):
        both = jnp.trace(jax.jacfwd(divergence_in_x, 1)(x, y))
        pairs = stein.loss(normal, jnp.stack([x, y]), KEY)  # its one pair, twice
        return both / jnp.exp(normal(x) + normal(y)), pairs

    expected, pairs = by_autodiff_and_ours(jnp.array([0.3, -0.7]), jnp.array([1.1, 0.4]))
    assert pairs == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("name", list(SETTINGS))
def test_it_is_zero_at_the_model_and_not_elsewhere(name):
    """Over 300 batches of 40: within 4 standard errors (by chance once in 16,000)."""
    stein = SETTINGS[name]
    batches = jax.random.normal(KEY, (300, 40, 2), jnp.float64)
    loss = jax.jit(lambda data: jax.lax.map(lambda batch: stein.loss(normal, batch, KEY), data))
    for shift, zero in ((0.0, True), (0.5, False)):
        values = np.asarray(loss(batches + shift))
        error = np.std(values) / 300**0.5
        assert (abs(np.mean(values)) < 4 * error) == zero


def test_variational_descent_brings_points_to_the_model():
    points = 0.3 * jax.random.normal(KEY, (60, 1), jnp.float64) + 2.0
    sampler = SteinVariational(KernelStein(GaussianKernel(1.0)), steps=300, step_size=0.3)
    moved, _ = jax.jit(lambda x: sampler.draw(normal, x, None, KEY))(points)
    assert abs(np.mean(moved.x)) < 0.05
    assert np.std(moved.x) == pytest.approx(1.0, abs=0.15)
    np.testing.assert_allclose(moved.f, -0.5 * np.asarray(moved.x)[:, 0] ** 2)
    assert not sampler.exact


def test_bad_scale():
    with pytest.raises(InputError, match="positive"):
        KernelStein(InverseMultiquadric(0.0))
