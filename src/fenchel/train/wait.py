"""The potential waits for its sampler.

Finite numbers can diverge too: f sharpens, its sampler falls behind, the draws no longer say where
f's mass is, and f runs away. Since the weights are known, so is how far the sampler is behind: its
*lag*, the gap between the two bounds on log Z, is the divergence from the sampler to the model as
the batch sees it. The potential's steps shrink as the lag grows, so the sampler always catches up.
"""

import equinox as eqx

from fenchel.shapes import Scalar


class Wait(eqx.Module):
    """Steps of f are multiplied by 1 / (1 + (lag / allowance)²).

    The allowance is `nats` plus `per_dimension` for each dimension; infinite: f never waits.
    """

    nats: float = eqx.field(static=True, default=1.0)
    per_dimension: float = eqx.field(static=True, default=0.05)

    def trust(self, lag: Scalar, dim: int) -> Scalar:
        """The factor on f's step, in (0, 1]."""
        return 1 / (1 + (lag / (self.nats + self.per_dimension * dim)) ** 2)
