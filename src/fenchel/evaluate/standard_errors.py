"""Standard errors: by how much an estimate would move if the data were drawn again.

An estimator ends where the mean over the data of g(x, w), the gradient of its loss, vanishes. With
A the mean derivative of g and B the covariance of g over the data, the estimate from n rows has the
covariance A⁻¹ B A⁻¹' / n, whether the model is true or not: the *sandwich*. For maximum likelihood
in a model that is true both are the information, the covariance of ∂f/∂w under the model, and the
covariance is its inverse over n; for f = w · φ(x) the information is the covariance of φ.

What is a gradient of one datum's own is asked of the loss, one row at a time. Two estimators are
not means over the data:

- *kernel Stein* is a mean over pairs, a U-statistic. In its Hájek projection a datum counts with
  twice its mean over all partners. (With few rows that mean is itself uncertain, and the errors
  come out somewhat too large.)
- *contrastive divergence* has no loss, only the gradient s(x_k) - s(x_0), s = ∂f/∂w, from a datum
  to the end of its chain. How that changes with w is a matter of the chain too, which cannot be
  differentiated where it accepts or rejects. But a kernel that leaves the model invariant has
  E_w[s(x_k)] = E_w[s(x_0)] for every w, and the derivative of that identity gives A, at a true
  model, as the covariance of s(x_0) - s(x_k) with s(x_0).
"""

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax import lax

from fenchel.errors import InputError
from fenchel.estimators import (
    AbstractEstimator,
    AbstractMeasure,
    ContrastiveDivergence,
    KernelStein,
    MaximumLikelihood,
    Nodes,
)
from fenchel.parameters import flat
from fenchel.shapes import Array, Key, Point, Points, Potential, PyTree, Scalar

BATCH = 2**12  # data at a time
ROWS = 2**14  # of the data, for the mean derivative: it is known well enough before they end
PAIRED = 2**10  # likewise for a loss over pairs, of which a datum has so many
PARTNERS = 32  # in one pass
CHAINS = 32  # from a datum, for the derivative of contrastive divergence
SINGULAR = 1e-5  # of eigenvalues in the scale of their diagonal, as single precision sees them

ModelAt = Callable[[Array], Potential]  # f at a vector of parameters


class WeightedDraws(AbstractMeasure):
    """A sampler's draws with their importance weights, in the place of an integral over all of x.

    `drawn.log_weight` is that of the weight for Z without f: minus log q, and what momenta cost.
    """

    drawn: Nodes

    @property
    def name(self) -> str:
        return "weighted draws"

    def nodes(self, f: Potential, x: Point, block: Array) -> Nodes:
        return self.drawn


class Moments(NamedTuple):
    """What the covariance of an estimate is made of, for p parameters."""

    gradient: Array  # (p,), of the loss; zero where training ought to have ended
    gradient_error: Array  # (p, p), the covariance of that gradient which is Monte Carlo's
    curvature: Array  # A
    scatter: Array  # B
    own: Array  # what the estimator's own random numbers add to B if they are drawn only once


def moments(
    estimator: AbstractEstimator,
    f: Potential,
    data: Points,
    memory: PyTree,
    key: Key,
    *,
    floor: float = 0.0,
    repeats: int = 1,
) -> Moments:
    """Of an estimator at f, on the data that it has seen.

    An estimator that draws random numbers in each step, or sees data on a noise floor, ends where
    the mean over them vanishes: `repeats` passes stand for that mean.
    """
    w, model = _parametrised(f)
    pass_key, curve_key = jax.random.split(key)

    def one_pass(sums: tuple[Array, Array], key: Key) -> tuple[tuple[Array, Array], None]:
        blur_key, own_key = jax.random.split(key)
        points = _blurred(data, floor, blur_key)
        found = _slopes(estimator, model, w, points, memory, own_key)
        return (sums[0] + found / repeats, sums[1] + _square(found) / repeats), None

    none = jnp.zeros((data.shape[0], w.size)), jnp.zeros((w.size, w.size))
    (slopes, square), _ = lax.scan(one_pass, none, jax.random.split(pass_key, repeats))
    gradient = jnp.mean(slopes, axis=0)
    within = (square - _square(slopes)) * (repeats / max(repeats - 1, 1))
    error = within / (repeats * data.shape[0]) + _draws_error(estimator, f, data.shape[1])
    # A mean over few passes scatters more than one over all, by what is left of their noise.
    scatter = _square(slopes - gradient[None]) - within / repeats
    points = _blurred(data, floor, curve_key)
    curvature = _curvature(estimator, model, w, points, memory, curve_key)
    return Moments(gradient, error, curvature, scatter, within)


def is_random(
    estimator: AbstractEstimator, f: Potential, data: Points, memory: PyTree, key: Key
) -> Array:
    """Whether the gradient on given data is drawn: if not, one pass over them is enough."""
    w, model = _parametrised(f)
    keys = jax.random.split(key)
    one, other = (_slopes(estimator, model, w, data, memory, key) for key in keys)
    return jnp.any(one != other)


def information(f: Potential, nodes: Nodes) -> Array:
    """The covariance of ∂f/∂w under the model, whose integrals are sums over these nodes."""
    slopes, weights = _model_slopes(f, nodes)
    return (weights[:, None] * slopes).T @ slopes


class Asymptotics(NamedTuple):
    """An estimate's covariance, and where the estimate ought to be."""

    covariance: np.ndarray
    step: np.ndarray  # Newton's, to where the gradient vanishes
    step_error: np.ndarray  # its Monte Carlo standard error


def sandwich(found: Moments, rows: int, passes: float = np.inf) -> Asymptotics:
    """A⁻¹ B A⁻¹' / n.

    `passes` says over how many draws of its own random numbers an estimator was averaged: 1 where
    they were drawn once and kept, as the noise of noise contrast may be.
    """
    bread = _inverse(found.curvature)
    meat = _not_negative(_double(found.scatter) + _double(found.own) / passes)
    return _asymptotics(bread, bread @ meat @ _transposed(bread) / rows, found)


def inverse_information(found: Moments, information: Array, rows: int) -> Asymptotics:
    """I⁻¹ / n, for maximum likelihood in a model that is taken to be true."""
    bread = _inverse(information)
    return _asymptotics(bread, bread / rows, found)


def _asymptotics(bread: np.ndarray, covariance: np.ndarray, found: Moments) -> Asymptotics:
    step = -np.einsum("...ij,...j->...i", bread, _double(found.gradient))
    error = bread @ _double(found.gradient_error) @ _transposed(bread)
    # What is zero may have been rounded below it.
    variances = np.maximum(np.diagonal(error, axis1=-2, axis2=-1), 0)
    return Asymptotics(covariance, step, np.sqrt(variances))


# What one datum adds to the gradient.


@singledispatch
def _slopes(
    estimator: AbstractEstimator, model: ModelAt, w: Array, points: Points, memory: PyTree, key: Key
) -> Array:
    """(n, p): the gradient of each datum's own loss."""
    slope = jax.grad(lambda w, row, key: _of_one(estimator, model(w), points, row, memory, key))
    rows, keys = jnp.arange(points.shape[0]), jax.random.split(key, points.shape[0])
    return lax.map(lambda inputs: slope(w, *inputs), (rows, keys), batch_size=BATCH)


@_slopes.register
def _(
    estimator: KernelStein, model: ModelAt, w: Array, points: Points, memory: PyTree, key: Key
) -> Array:
    with_partners = _slopes.dispatch(AbstractEstimator)(estimator, model, w, points, memory, key)
    return 2 * with_partners - jnp.mean(with_partners, axis=0, keepdims=True)


@_slopes.register
def _(
    estimator: ContrastiveDivergence,
    model: ModelAt,
    w: Array,
    points: Points,
    memory: PyTree,
    key: Key,
) -> Array:
    order_key, draw_key = jax.random.split(key)
    # In random order: in an ensemble of kernels a datum's place decides which of them it gets.
    order = jax.random.permutation(order_key, points.shape[0])
    particles, _ = estimator.chains.draw(model(w), points[order], memory, draw_key)
    ends = particles.x[jnp.argsort(order)]
    return _potential_slopes(model, w, ends) - _potential_slopes(model, w, points)


@singledispatch
def _of_one(
    estimator: AbstractEstimator, f: Potential, points: Points, row: Array, memory: PyTree, key: Key
) -> Scalar:
    """The loss of one datum among the others."""
    return estimator.estimate(f, points[row][None], memory, key).loss


@_of_one.register
def _(
    estimator: KernelStein, f: Potential, points: Points, row: Array, memory: PyTree, key: Key
) -> Scalar:
    others = 1 + jax.random.randint(key, (PARTNERS,), 0, points.shape[0] - 1)
    of_pairs = KernelStein(estimator.kernel, estimator.diffusion)  # without those of x and x

    def with_partner(y: Point) -> Scalar:
        return of_pairs.loss(f, jnp.stack([points[row], y]), key)

    return jnp.mean(jax.vmap(with_partner)(points[(row + others) % points.shape[0]]))


# How the gradient changes with the parameters.


@singledispatch
def _curvature(
    estimator: AbstractEstimator, model: ModelAt, w: Array, points: Points, memory: PyTree, key: Key
) -> Array:
    """The mean Hessian, with whatever was drawn along f held fixed as in training.

    (Probability flow's trajectories follow f. Where the model is true its gradient vanishes
    whatever drives them, so that nothing is left out.)
    """
    order_key, own_key = jax.random.split(key)
    rows = jax.random.permutation(order_key, points.shape[0])[:ROWS]
    keys = jax.random.split(own_key, rows.size)

    def loss(w: Array) -> Scalar:
        one = lambda row, key: _of_one(estimator, model(w), points, row, memory, key)  # noqa: E731
        return jnp.mean(jax.vmap(one)(rows, keys))

    return _hessian(loss, w)


@_curvature.register
def _(
    estimator: KernelStein, model: ModelAt, w: Array, points: Points, memory: PyTree, key: Key
) -> Array:
    some = jax.random.permutation(key, points)[:PAIRED]
    return _hessian(lambda w: estimator.loss(model(w), some, key), w)


@_curvature.register
def _(
    estimator: ContrastiveDivergence,
    model: ModelAt,
    w: Array,
    points: Points,
    memory: PyTree,
    key: Key,
) -> Array:
    once = lambda key: _slopes(estimator, model, w, points, memory, key)  # noqa: E731
    change = jnp.mean(lax.map(once, jax.random.split(key, CHAINS)), axis=0)
    start = _potential_slopes(model, w, points)
    return -change.T @ (start - jnp.mean(start, axis=0, keepdims=True)) / points.shape[0]


def _hessian(loss: Callable[[Array], Scalar], w: Array) -> Array:
    """One column at a time: all at once would hold every datum's own in memory."""
    column = lambda direction: jax.jvp(jax.grad(loss), (w,), (direction,))[1]  # noqa: E731
    return lax.map(column, jnp.eye(w.size, dtype=w.dtype))


# The model's own slopes, and small things.


def _parametrised(f: Potential) -> tuple[Array, ModelAt]:
    w, rebuild = flat(f)
    return w, lambda w: paramax.unwrap(rebuild(w))


def _potential_slopes(model: ModelAt, w: Array, points: Points) -> Array:
    slope = jax.grad(lambda w, x: model(w)(x))
    return lax.map(lambda x: slope(w, x), points, batch_size=BATCH)


def _model_slopes(f: Potential, nodes: Nodes) -> tuple[Array, Array]:
    """∂f/∂w at each node, less its mean under the model, and the model's weights of the nodes."""
    w, model = _parametrised(f)
    weights = jax.nn.softmax(nodes.values(model(w)))
    slopes = _potential_slopes(model, w, nodes.x)
    return slopes - (weights @ slopes)[None], weights


def _draws_error(estimator: AbstractEstimator, f: Potential, dim: int) -> Array:
    """What random draws in the place of an integral leave in the mean of ∂f/∂w."""
    drawn = getattr(estimator, "measure", None)
    if not isinstance(estimator, MaximumLikelihood) or not isinstance(drawn, WeightedDraws):
        return jnp.zeros(())
    slopes, weights = _model_slopes(f, drawn.drawn)
    return _square(weights[:, None] * slopes) * weights.size


def _blurred(data: Points, floor: float, key: Key) -> Points:
    return data + floor * jax.random.normal(key, data.shape, data.dtype)


def _square(rows: Array) -> Array:
    """The mean over rows of the outer product with themselves."""
    return rows.T @ rows / rows.shape[0]


def _double(array: Array) -> np.ndarray:
    return np.asarray(array, np.float64)


def _transposed(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)


def _not_negative(matrix: np.ndarray) -> np.ndarray:
    """A covariance without what the difference of two estimates may have left below zero."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0)[..., None, :]) @ _transposed(vectors)


def _inverse(matrix: Array) -> np.ndarray:
    """In double precision, or an error where there is none; also of many at once."""
    double = _double(matrix)
    diagonal = np.diagonal(double, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, np.nan))
    unit = (double + _transposed(double)) / (2 * scale[..., :, None] * scale[..., None, :])
    if not (np.isfinite(unit).all() and np.linalg.eigvalsh(unit).min() > SINGULAR):
        raise InputError(
            "The parameters are not determined by the data: the loss is flat along some "
            "combination of them, or not at a minimum. Leave out what is redundant (a constant "
            "among the statistics, or one that the others add up to), or train longer."
        )
    return np.linalg.inv(double)
