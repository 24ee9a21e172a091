"""q0(x, v): where particles come from."""

from abc import abstractmethod

import equinox as eqx

from fenchel.shapes import Key, Momentum, Point, Points, PyTree, Scalar


class AbstractStart(eqx.Module):
    """Draws the first point and the first momentum, with their joint log density.

    `exact` says whether that density is the true one, constants included. Where it is not (the
    start is a set of points), there are no importance weights.
    """

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether `log_q` is the exact log density of what was drawn."""

    @abstractmethod
    def init(self, data: Points, key: Key) -> PyTree:
        """What the start remembers from draw to draw; None if nothing."""

    @abstractmethod
    def draw(self, point: Point, state: PyTree, key: Key) -> tuple[Point, Momentum, Scalar]:
        """(x0, v0, log q0(x0, v0)); `point` is one data point, for the starts that begin there."""

    @abstractmethod
    def remember(self, state: PyTree, x: Points) -> PyTree:
        """The state after the dynamics brought a batch to `x`."""

    def reordered(self, state: PyTree, key: Key) -> PyTree:
        """What it remembers in another order, for those who hand it out in turn."""
        return state

    def settled(self, key: Key) -> "AbstractStart":
        """As it is handed out, for those that are otherwise while they are learnt."""
        return self


class AbstractStatelessStart(AbstractStart):
    """A start without a memory."""

    def init(self, data: Points, key: Key) -> None:
        return None

    def remember(self, state: None, x: Points) -> None:
        return None


class AbstractDensityStart(AbstractStatelessStart):
    """A start whose marginal log density can be evaluated at any point.

    That is what the *anchor* needs: the log likelihood of the data under the start, added to the
    sampler's objective, keeps the start on every mode.
    """

    @abstractmethod
    def log_density(self, x: Point) -> Scalar:
        """log q0(x)."""
