"""Names for the shapes that go from room to room."""

from collections.abc import Callable

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

Key = PRNGKeyArray
Scalar = Float[Array, ""]
Point = Float[Array, "d"]  # one example; batches appear only at a sampler's boundary
Momentum = Float[Array, "l"]
Points = Float[Array, "n d"]

# The sign convention of the whole library: f is an unnormalised *log density*,
# p(x) = exp f(x) / Z. An energy in the physicist's sense is -f.
Potential = Callable[[Point], Scalar]

__all__ = ["Array", "Key", "Momentum", "Point", "Points", "Potential", "PyTree", "Scalar"]
