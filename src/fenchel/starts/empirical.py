"""The nonparametric start: a data point and N(0, I)."""

import equinox as eqx

from fenchel.dynamics import CentredNormal
from fenchel.starts.start import AbstractStatelessStart
from fenchel.typing import Key, Momentum, Point, Scalar


class Empirical(AbstractStatelessStart):
    """q0(x, v) = p_D(x) q(v).

    p_D has no density; its entropy is a constant that no parameter touches, and is left out of
    `log_q`, as in the paper's reduced objective.
    """

    momentum: CentredNormal
    exact: bool = eqx.field(static=True, default=False)

    def draw(self, point: Point, state: None, key: Key) -> tuple[Point, Momentum, Scalar]:
        v, log_v = self.momentum.draw(key)
        return point, v, log_v
