"""The exponential family proper: f(x) = w · φ(x) for given sufficient statistics φ."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.errors import InputError
from fenchel.shapes import Array, Point, Scalar


class Linear(eqx.Module):
    """Linear in the statistics that the user gives; only the weights are learnt.

    **Arguments:**

    - `statistics`: φ, a function from one point to a vector (or scalar) of statistics.
    - `dim`: the dimension of a point.
    - `names`: one name a statistic; `w1, w2, ...` if not given.
    - `weights`: where the weights start; zero if not given.
    """

    weights: Array
    statistics: Callable[[Point], Array]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        statistics: Callable[[Point], Array],
        dim: int,
        names: Sequence[str] | None = None,
        weights: Array | None = None,
    ):
        point = jax.ShapeDtypeStruct((dim,), jnp.result_type(float))
        shape = jnp.atleast_1d(jnp.zeros(jax.eval_shape(statistics, point).shape)).shape
        if len(shape) != 1:
            raise InputError(
                f"The statistics of a point have shape {shape}: return a vector of them instead."
            )
        names = tuple(names) if names is not None else tuple(f"w{i + 1}" for i in range(shape[0]))
        if len(names) != shape[0] or len(set(names)) != len(names):
            raise InputError(
                f"There are {shape[0]} statistics and the names {names}: give each its own name."
            )
        self.statistics = statistics
        self.names = names
        self.weights = jnp.zeros(shape) if weights is None else jnp.asarray(weights, float)
        if self.weights.shape != shape:
            raise InputError(
                f"There are {shape[0]} statistics and weights of shape {self.weights.shape}: "
                "give one weight a statistic."
            )

    def __call__(self, x: Point) -> Scalar:
        return jnp.dot(self.weights, jnp.atleast_1d(self.statistics(x)))

    @property
    def parameters(self) -> dict[str, float]:
        """The weights by name."""
        return dict(zip(self.names, self.weights.tolist(), strict=True))
