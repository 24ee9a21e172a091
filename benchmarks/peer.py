"""What the two peers share: a trained model, divergence, a run that is saved, the samplers' work.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

LOSS_LIMIT = 1e6  # a loss beyond it, either way, is a run that has gone


class Trained(NamedTuple):
    """What `train` of a peer returns; it stops at the first step that fails."""

    log_density: Callable[[np.ndarray], np.ndarray]  # minus the energy at (n, 2) points
    seconds: float  # of the steps that were made, without imports, the looking or the saving
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


class Paused(Exception):  # noqa: N818, it is no error
    """How `train` of a peer ends when its time is over; the run's file lets it go on."""


class Saving(NamedTuple):
    """Where a run is saved, how often, and until when it may train."""

    file: Path
    until: float = float("inf")  # of `time.time`, which all processes share
    every: int = 1_000  # steps


class Part(Protocol):
    """What a run consists of: modules, optimisers, ebmkit's trainer."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> object: ...


class Watch:
    """Sees a run diverge, keeps the time of its steps alone, and saves it or goes on with it.

    Make it last, right before the first step: it puts back what `parts` and PyTorch's random
    numbers were. (Neither peer has others.)
    """

    def __init__(
        self, parameters: "Iterable[Tensor]", parts: dict[str, Part], saving: Saving | None = None
    ):
        self.parameters, self.parts, self.saving = list(parameters), parts, saving
        self.steps, self.seconds, self.failed_at, self.final_loss = 0, 0.0, None, float("nan")
        if saving and saving.file.is_file():
            self._load(saving.file)
        self.began = time.perf_counter()

    def fails(self, loss: float) -> bool:
        """Whether this update, made with this loss, was the first to fail."""
        self.seconds += time.perf_counter() - self.began
        self.steps, self.final_loss = self.steps + 1, loss
        fine = abs(loss) <= LOSS_LIMIT  # also False for nan
        if not (fine and all(bool(p.isfinite().all()) for p in self.parameters)):
            self.failed_at = self.steps
        elif self.saving:
            self._save_or_pause(self.saving)
        self.began = time.perf_counter()
        return self.failed_at is not None

    def _save_or_pause(self, saving: Saving) -> None:
        over = time.time() >= saving.until
        if over or self.steps % saving.every == 0:
            self._save(saving.file)
        if over:
            raise Paused

    def _save(self, file: Path) -> None:
        import torch

        run = {
            "steps": self.steps,
            "seconds": self.seconds,
            "final_loss": self.final_loss,
            "parts": {name: part.state_dict() for name, part in self.parts.items()},
            "random": torch.get_rng_state(),
        }
        # Whoever is killed while writing leaves the last file whole.
        half_written = file.with_suffix(".new")
        torch.save(run, half_written)
        half_written.replace(file)

    def _load(self, file: Path) -> None:
        import torch

        run = saved(file)
        self.steps, self.seconds, self.final_loss = (
            run[name] for name in ("steps", "seconds", "final_loss")
        )
        for name, part in self.parts.items():
            part.load_state_dict(run["parts"][name])
        torch.set_rng_state(run["random"])

    def trained(self, energy: "nn.Module") -> Trained:
        """The end of the run."""
        return Trained(
            log_density=minus(energy),
            seconds=self.seconds,
            diverged=self.failed_at is not None,
            failed_at=self.failed_at,
            final_loss=self.final_loss,
        )


def saved(file: Path) -> dict[str, Any]:
    """What `Watch` wrote: tensors and numbers, never code."""
    import torch

    return torch.load(file, weights_only=True)


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
