"""Where the data can be: the whole space, a half-line or a box in each coordinate."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.shapes import Array, Point


class Domain(eqx.Module):
    """Between `low` and `high` (numbers, or one a coordinate); infinite by default.

    `cap` bounds the weight of score matching far from the ends.
    """

    low: float | Array = -jnp.inf
    high: float | Array = jnp.inf
    cap: float = eqx.field(static=True, default=1.0)

    def weight(self, x: Point) -> tuple[Point, Point]:
        """h(x), the distance to the nearest end but at most `cap`, with its slope."""

        def distance(x: Point) -> Point:
            return jnp.minimum(self.cap, jnp.minimum(x - self.low, self.high - x))

        return jax.jvp(distance, (x,), (jnp.ones_like(x),))
