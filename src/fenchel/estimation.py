"""From a classical method's name to its estimator, and to the chains that draw from its model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import paramax

from fenchel.choices import choose
from fenchel.config import EstimatorConfig, StartConfig
from fenchel.dynamics import (
    AbstractDynamics,
    CentredNormal,
    Gibbs,
    HiddenGibbs,
    Options,
    Rademacher,
    Repeat,
    hmc,
    langevin,
)
from fenchel.errors import InputError
from fenchel.estimators import (
    AbstractEstimator,
    AbstractKernel,
    AbstractMeasure,
    CompositeLikelihood,
    ContrastiveDivergence,
    Counting,
    Cover,
    DenoisingScoreMatching,
    Domain,
    FlowNoise,
    GaussianKernel,
    GaussianNoise,
    Hamiltonian,
    InverseMultiquadric,
    KernelStein,
    MaximumLikelihood,
    MinimumProbabilityFlow,
    Neighbourhoods,
    Neighbours,
    NoiseContrastive,
    Quadrature,
    ScoreMatching,
    flips,
    overlapping_strips,
    panelled,
    pseudo_likelihood,
    strip_edges,
)
from fenchel.potentials import RestrictedBoltzmann, SelfNormalised, Within
from fenchel.samplers import AbstractSampler, Embedding, Ensemble, Persistent, Tuned
from fenchel.shapes import Key, Potential
from fenchel.starts import Empirical, Replay
from fenchel.states import MOST_STATES

SWEEPS = 100  # of a Gibbs sampler, for one draw from a fitted model
TRAJECTORIES = 60  # of Hamiltonian Monte Carlo, likewise, of
DRAW_LEAPFROGS = 5
ENERGY_PENALTY = 1e-3  # of the replay buffer's method, unless given
ENSEMBLE = (1, 3, 10)  # leapfrogs a trajectory in the kernels of the ensemble
GRID_COLUMNS = 2  # up to which quadrature takes all columns at once
FINE = 100  # nodes a column there
STRIPS = 3.0  # standard deviations, within which the strips of non-local contrast lie,
REACH = 8.0  # and up to which it integrates


def states_of(potential: Potential) -> tuple[float, ...] | None:
    """What a variable of this model can be; None if it is continuous."""
    if isinstance(potential, SelfNormalised | Within):
        return states_of(potential.potential)
    return getattr(potential, "states", None)


def domain_of(potential: Potential) -> Domain | None:
    """The box that a potential lives in, if any."""
    if isinstance(potential, SelfNormalised):
        return domain_of(potential.potential)
    if not isinstance(potential, Within):
        return None
    bounded = paramax.unwrap(potential)
    return Domain(bounded.low, bounded.high)


def build_estimator(
    method: str,
    config: EstimatorConfig,
    start: StartConfig,
    dim: int,
    potential: Potential,
    key: Key,
) -> AbstractEstimator:
    """The estimator of that name for this potential."""
    domain = domain_of(potential) or Domain()
    kinds: dict[str, Callable[[], AbstractEstimator]] = {
        "mle": lambda: MaximumLikelihood(_whole_measure(dim, potential, domain, method)),
        "cd": lambda: ContrastiveDivergence(_from_data(config, dim, potential, key), _none(config)),
        "pcd": lambda: ContrastiveDivergence(
            _persistent(config, dim, potential, key), _none(config)
        ),
        "replay-cd": lambda: _replay(config, start, dim, potential, key),
        "ensemble-cd": lambda: ContrastiveDivergence(_ensemble(config, dim, key), _none(config)),
        "score-matching": lambda: ScoreMatching(domain=domain),
        "sliced-score-matching": lambda: ScoreMatching(Rademacher(config.probes), domain),
        "denoising-score-matching": lambda: DenoisingScoreMatching(config.sigma),
        "kernel-stein": lambda: KernelStein(_kernel(config)),
        "pseudo-likelihood": lambda: pseudo_likelihood(dim, _measure(config, potential, domain)),
        "composite-likelihood": lambda: CompositeLikelihood(
            _blocks(config, dim, potential), _measure(config, potential, domain, config.block)
        ),
        "non-local": lambda: _non_local(config, dim, potential, domain),
        "mpf": lambda: _probability_flow(config, potential),
        "nce": lambda: NoiseContrastive(_noise(config), config.ratio),
    }
    return choose(kinds, method, "method")()


def drawing_chains(dim: int, potential: Potential, key: Key) -> AbstractSampler:
    """What draws from a model whose estimator learns no sampler: long chains from the data."""
    if states_of(potential) is not None:
        sweep = _gibbs(potential)
        return Embedding(Empirical(CentredNormal(0)), Repeat(sweep, SWEEPS))
    options = Options(steps=TRAJECTORIES, leapfrogs=DRAW_LEAPFROGS, metropolis=True, per_step=False)
    return Tuned(Embedding(Empirical(CentredNormal(dim)), hmc(dim, options, key)))


def _kernel_options(config: EstimatorConfig, **changes: Any) -> Options:
    """Those of the chains' kernel, all steps alike."""
    settings: dict[str, Any] = {
        "steps": config.k,
        "leapfrogs": config.leapfrogs,
        "step_size": config.step_size,
        "metropolis": config.metropolis,
    }
    return Options(**(settings | changes), per_step=False)


def _chain_kernel(
    config: EstimatorConfig, dim: int, potential: Potential, key: Key
) -> tuple[AbstractDynamics, int]:
    """(kernel, the dimension of its momentum)."""
    if states_of(potential) is not None:
        return Repeat(_gibbs(potential), config.k), 0
    if domain_of(potential) is not None and not config.metropolis:
        raise InputError(
            "Only a Metropolis step turns chains back at the ends of a domain: leave "
            "estimator.metropolis on."
        )

    def langevin_kernel() -> AbstractDynamics:
        # With a Metropolis step Langevin's proposal is one leapfrog.
        if config.metropolis:
            return hmc(dim, _kernel_options(config, leapfrogs=1), key)
        return langevin(dim, _kernel_options(config), key)

    kinds: dict[str, Callable[[], AbstractDynamics]] = {
        "hmc": lambda: hmc(dim, _kernel_options(config), key),
        "langevin": langevin_kernel,
    }
    return choose(kinds, config.kernel, "kernel")(), dim


def _gibbs(potential: Potential) -> AbstractDynamics:
    if isinstance(potential, RestrictedBoltzmann):
        return HiddenGibbs()
    values = states_of(potential)
    assert values is not None
    return Gibbs(values)


def _from_data(
    config: EstimatorConfig, dim: int, potential: Potential, key: Key
) -> AbstractSampler:
    kernel, momentum = _chain_kernel(config, dim, potential, key)
    return Tuned(Embedding(Empirical(CentredNormal(momentum)), kernel))


def _persistent(
    config: EstimatorConfig, dim: int, potential: Potential, key: Key
) -> AbstractSampler:
    kernel, momentum = _chain_kernel(config, dim, potential, key)
    return Tuned(Persistent(kernel, momentum, config.chains))


def _replay(
    config: EstimatorConfig, start: StartConfig, dim: int, potential: Potential, key: Key
) -> AbstractEstimator:
    kernel, momentum = _chain_kernel(config, dim, potential, key)
    buffer = Replay(CentredNormal(momentum), start.capacity, start.restart)
    chains = Tuned(Embedding(buffer, kernel))
    penalty = ENERGY_PENALTY if config.energy_penalty is None else config.energy_penalty
    return ContrastiveDivergence(chains, penalty)


def _ensemble(config: EstimatorConfig, dim: int, key: Key) -> AbstractSampler:
    options = [_kernel_options(config, leapfrogs=count) for count in ENSEMBLE]
    start = Empirical(CentredNormal(dim))
    return Ensemble([Tuned(Embedding(start, hmc(dim, own, key))) for own in options])


def _none(config: EstimatorConfig) -> float:
    return config.energy_penalty or 0.0


def _kernel(config: EstimatorConfig) -> AbstractKernel:
    kinds: dict[str, Callable[[], AbstractKernel]] = {
        "imq": lambda: InverseMultiquadric(config.stein_scale),
        "rbf": lambda: GaussianKernel(config.stein_scale),
    }
    return choose(kinds, config.stein_kernel, "Stein kernel")()


def _noise(config: EstimatorConfig) -> type[GaussianNoise] | type[FlowNoise]:
    kinds: dict[str, type[GaussianNoise] | type[FlowNoise]] = {
        "gaussian": GaussianNoise,
        "flow": FlowNoise,
    }
    return choose(kinds, config.noise, "noise")


def _measure(
    config: EstimatorConfig, potential: Potential, domain: Domain, block: int = 1
) -> AbstractMeasure:
    """Over blocks of so many columns; each further one has a fourth of the nodes and looks."""
    values = states_of(potential)
    if values is not None:
        return Counting(values)
    coarser = 2 ** (block - 1)
    return Quadrature(config.nodes // coarser, domain, looks=25 // coarser)


def whole_measure(dim: int, potential: Potential, domain: Domain) -> AbstractMeasure | None:
    """A measure for integrals over all columns at once, where that can be done."""
    values = states_of(potential)
    if values is not None:
        return Counting(values) if len(values) ** dim <= MOST_STATES else None
    return Quadrature(FINE, domain) if dim <= GRID_COLUMNS else None


def _whole_measure(dim: int, potential: Potential, domain: Domain, method: str) -> AbstractMeasure:
    measure = whole_measure(dim, potential, domain)
    if measure is None:
        raise InputError(
            f"The method {method!r} sums or integrates over all {dim} columns at once, which can "
            "be done for 1 or 2 continuous columns or 20 spins: use another method, such as ade, "
            "score-matching or, for discrete data, pseudo-likelihood."
        )
    return measure


def _blocks(config: EstimatorConfig, dim: int, potential: Potential) -> list[tuple[int, ...]]:
    """Neighbouring columns."""
    if states_of(potential) is None and config.block > GRID_COLUMNS:
        raise InputError(
            f"estimator.block is {config.block}, and quadrature takes at most {GRID_COLUMNS} "
            "continuous columns at once: set it to 1 or 2."
        )
    if config.block >= dim:
        raise InputError(
            f"A block of {config.block} columns is all that the data have, and their composite "
            "likelihood is the likelihood: use the method mle, or set estimator.block below "
            f"{dim}."
        )
    return [
        tuple(range(first, min(first + config.block, dim))) for first in range(0, dim, config.block)
    ]


def _non_local(
    config: EstimatorConfig, dim: int, potential: Potential, domain: Domain
) -> AbstractEstimator:
    values = states_of(potential)
    if values is not None:
        return Neighbourhoods(flips(values), centres=1)
    _whole_measure(dim, potential, domain, "non-local")
    strips = (config.cells, -STRIPS, STRIPS)
    low, high = (np.broadcast_to(np.asarray(end, float), dim) for end in (domain.low, domain.high))
    low, high = np.maximum(low, -REACH), np.minimum(high, REACH)
    edges = [np.unique([low[0], high[0], *np.clip(strip_edges(*strips), low[0], high[0])])]
    edges += [np.linspace(low[j], high[j], 2 * config.cells + 1) for j in range(1, dim)]
    return Cover(overlapping_strips(*strips), panelled(edges, max(4, FINE // (2 * config.cells))))


def _probability_flow(config: EstimatorConfig, potential: Potential) -> AbstractEstimator:
    values = states_of(potential)
    if values is not None:
        return MinimumProbabilityFlow(Neighbours(flips(values)))
    return MinimumProbabilityFlow(Hamiltonian(config.flow_step, config.leapfrogs))
