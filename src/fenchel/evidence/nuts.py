"""Reference draws: what a careful Markov chain makes of f, to hold a learnt sampler against."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np
import paramax

from fenchel.errors import InputError
from fenchel.shapes import Array, Key, Points, Potential

GOOD_R_HAT = 1.01
DIVERGENT = 1e-3  # of the draws, from which on parts of f may not have been reached


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws of several chains, (chains, draws, d), with what tells whether they can be believed."""

    x: np.ndarray
    names: tuple[str, ...]
    acceptance: float
    divergences: int

    @cached_property
    def r_hat(self) -> np.ndarray:
        """Of each column, rank-normalised and split: near 1 where the chains agree."""
        return self._each("rhat", method="rank")

    @cached_property
    def bulk_ess(self) -> np.ndarray:
        """How many independent draws each column's centre is worth."""
        return self._each("ess", method="bulk")

    @cached_property
    def tail_ess(self) -> np.ndarray:
        """The same of its 5% and 95% quantiles."""
        return self._each("ess", method="tail", prob=(0.05, 0.95))

    @property
    def converged(self) -> bool:
        """By the usual rule: every R-hat at most 1.01, 100 effective draws a chain, and hardly any
        of them divergent."""
        fewest = min(self.bulk_ess.min(), self.tail_ess.min())
        straight = self.divergences <= DIVERGENT * len(self.flat)
        return bool(straight and self.r_hat.max() <= GOOD_R_HAT and fewest >= 100 * len(self.x))

    @property
    def flat(self) -> np.ndarray:
        """All draws, (chains times draws, d)."""
        return self.x.reshape(-1, self.x.shape[-1])

    def to_arviz(self) -> Any:
        """An ArviZ DataTree with a posterior group, one variable a column."""
        try:
            from arviz_base import from_dict
        except ImportError:
            raise InputError(
                "ArviZ is not installed: `pip install fenchel[arviz]` brings what is needed."
            ) from None
        columns = {name: self.x[..., index] for index, name in enumerate(self.names)}
        return from_dict({"posterior": columns})

    def _each(self, statistic: str, **options: Any) -> np.ndarray:
        # Imported here: it takes a second, and most fits are never diagnosed.
        from arviz_stats.base import array_stats

        compute = getattr(array_stats, statistic)
        columns = np.moveaxis(self.x, -1, 0)
        return np.array([compute(c, chain_axis=0, draw_axis=1, **options) for c in columns])


def nuts(
    f: Potential, starts: Points, names: tuple[str, ...], key: Key, draws: int, warm_up: int
) -> Chains:
    """The No-U-Turn sampler of BlackJAX on exp f, a chain from each of the starts."""
    if starts.shape[0] < 2 or draws < 10 or warm_up < 20:
        raise InputError(
            f"{starts.shape[0]} chains of {draws} draws after {warm_up}: diagnostics need at least "
            "2 chains of 10 draws after 20."
        )
    x, acceptance, divergent = _run(f, starts, key, draws, warm_up)
    return Chains(
        np.asarray(x, np.float64),
        names,
        float(np.mean(acceptance)),
        int(np.sum(divergent)),
    )


@eqx.filter_jit
def _run(
    f: Potential, starts: Points, key: Key, draws: int, warm_up: int
) -> tuple[Array, Array, Array]:
    import blackjax

    f = paramax.unwrap(f)

    def one(x: Array, key: Key):
        warm_key, run_key = jax.random.split(key)
        adaptation = blackjax.window_adaptation(blackjax.nuts, f)
        (state, parameters), _ = adaptation.run(warm_key, x, num_steps=warm_up)
        kernel = blackjax.nuts(f, **parameters)

        def step(state, key: Key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.acceptance_rate, info.is_divergent)

        return jax.lax.scan(step, state, jax.random.split(run_key, draws))[1]

    return jax.vmap(one)(starts, jax.random.split(key, starts.shape[0]))
