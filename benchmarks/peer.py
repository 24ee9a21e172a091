"""What the two peers share: what a trained model is, how divergence is seen, the samplers' work.

PyTorch is imported only where it is used, so that JAX's side can read `WORK` without it.

The samplers' work, the same for both peers, and E is elementwise:

    E(x) = height * sum_i (x_i^2 - well^2)^2,   dE/dx_i = 4 * height * x_i * (x_i^2 - well^2)

    Langevin   x <- x - step * grad E(x) + sqrt(2 * step) * noise,   unadjusted
    HMC        v ~ N(0, I); `leapfrog_steps` times a half kick, a drift and a half kick;
               accepted with probability min(1, exp(H_before - H_after)), H = E(x) + |v|^2 / 2

from `initial_batch`, in float32; `steps` counts Langevin's updates and HMC's whole trajectories.
"""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

LOSS_LIMIT = 1e6  # a loss beyond it, either way, is a run that has gone


class Trained(NamedTuple):
    """What `train` of a peer returns; it stops at the first step that fails."""

    log_density: Callable[[np.ndarray], np.ndarray]  # minus the energy at (n, 2) points
    seconds: float  # of the steps that were made, without imports or the search for failures
    diverged: bool
    failed_at: int | None  # the update, counted from 1, that left something non-finite or too large
    final_loss: float


class Work(NamedTuple):
    """The double well and how it is sampled.

    height, well: the defaults of TorchEBM's `DoubleWellModel`.
    langevin_step: of TorchEBM's docstring example on that model, and ebmkit's default.
    hmc_step, leapfrog_steps: likewise, of both; 0.85 to 0.96 are accepted at the three sizes.
    """

    height: float = 2.0
    well: float = 1.0
    langevin_step: float = 0.01
    hmc_step: float = 0.1
    leapfrog_steps: int = 10


WORK = Work()
SIZES = ((64, 8, 50), (256, 32, 100), (1024, 128, 200))  # TorchEBM's benchmarks/conftest.py, SCALES


def initial_batch(batch: int, dim: int) -> np.ndarray:
    """Standard normal, as in TorchEBM's own benchmark, and always the same."""
    return np.random.default_rng(0).standard_normal((batch, dim)).astype(np.float32)


class Watch:
    """Sees a run diverge, and keeps its time without the time that looking takes."""

    def __init__(self, parameters: "Iterable[Tensor]"):
        self.parameters = list(parameters)
        self.steps, self.failed_at, self.final_loss = 0, None, float("nan")
        self.looking, self.began = 0.0, time.perf_counter()

    def fails(self, loss: float) -> bool:
        """Whether this update, made with this loss, was the first to fail."""
        began = time.perf_counter()
        self.steps, self.final_loss = self.steps + 1, loss
        fine = abs(loss) <= LOSS_LIMIT  # also False for nan
        if not (fine and all(bool(p.isfinite().all()) for p in self.parameters)):
            self.failed_at = self.steps
        self.looking += time.perf_counter() - began
        return self.failed_at is not None

    def trained(self, energy: "nn.Module") -> Trained:
        """The end of the run; the clock stops here."""
        seconds = time.perf_counter() - self.began - self.looking
        return Trained(
            log_density=minus(energy),
            seconds=seconds,
            diverged=self.failed_at is not None,
            failed_at=self.failed_at,
            final_loss=self.final_loss,
        )


def minus(energy: "nn.Module") -> Callable[[np.ndarray], np.ndarray]:
    """The unnormalised log density of both peers' convention, p ∝ exp(-E)."""
    import torch

    @torch.no_grad()
    def log_density(points: np.ndarray) -> np.ndarray:
        return -energy(torch.as_tensor(points, dtype=torch.float32)).numpy()

    return log_density


def to_completion(run: Callable[[], object], device: str) -> Callable[[], None]:
    """Calls it and waits until the device is done."""
    import torch

    def call() -> None:
        run()
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize()

    return call
