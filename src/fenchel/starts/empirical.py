"""The nonparametric start: a data point and N(0, I)."""

import jax

from fenchel.dynamics import CentredNormal
from fenchel.shapes import Key, Momentum, Point, PyTree, Scalar
from fenchel.starts.start import AbstractStatelessStart


class Empirical(AbstractStatelessStart):
    """q0(x, v) = p_D(x) q(v).

    p_D has no density; its entropy is a constant that no parameter touches, and is left out of
    `log_q`, as in the paper's reduced objective.
    """

    momentum: CentredNormal

    @property
    def exact(self) -> bool:
        return False

    def draw(self, point: Point, state: None, key: Key) -> tuple[Point, Momentum, Scalar]:
        v, log_v = self.momentum.draw(key)
        return point, v, log_v


def begins_at_data(sampler: PyTree) -> bool:
    """Whether anything in a sampler starts at data points."""

    def is_empirical(node: object) -> bool:
        return isinstance(node, Empirical)

    return any(map(is_empirical, jax.tree.leaves(sampler, is_leaf=is_empirical)))
