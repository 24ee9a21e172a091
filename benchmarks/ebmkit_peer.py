"""ebmkit 0.16.0 (`import ebm`) as its README and examples use it.

It has all six methods, of which one is not quite what its name says: without a replay buffer its
`ContrastiveDivergence` begins its chains at standard normal noise, never at the data, and its own
benchmark calls that "CD (short-run)", with 60 steps. Here it has 10, as "cd-10" asks.

Two recipes, since ebmkit recommends two for contrastive divergence:

- "readme": the README's quick start. No regularisation, 3,000 steps.
- "example": examples/train_two_moons.py for pcd (energies regularised, weights averaged) and
  `bench_cd` of examples/benchmark_losses.py for cd-10 (energies regularised), 6,000 steps.

They differ in nothing else, and not at all for the other four. Not theirs: the standardised data
(their moons have standard deviations of 0.9 and 0.5) and the net's third hidden layer (though
research/02-training-methods.md, 8.1, has it). That layer is what the README's recipe for pcd does
not survive: with two, it was sound after 700 steps; with three, on their data or ours, gone by 400.
"""

from collections.abc import Callable
from contextlib import suppress

import ebm
import numpy as np
import torch
from ebm.losses.base import LossOutput
from torch import Tensor, nn

from benchmarks.peer import WORK, Saving, Trained, Watch, initial_batch, to_completion

VERSION = "0.16.0"  # what the comments speak of
METHODS = ("cd-10", "pcd", "sm-exact", "sm-sliced", "sm-denoising", "nce")
RECIPES = ("readme", "example")
HIDDEN = (128, 128, 128)  # SiLU is MLPEnergy's only activation
RATE, BATCH = 1e-3, 256  # README and every two-moons example; Adam is the trainer's default
LANGEVIN_STEP, PERSISTENT_STEPS, BUFFER = 1e-2, 60, 8192  # README and every two-moons example
ENERGY_REG = {"readme": 0.0, "example": 0.1}
EMA_DECAY = 0.999  # examples/train_two_moons.py


class Stop(Exception):  # noqa: N818, it is no error
    """How a callback ends `Trainer.fit`."""


def train(
    method: str,
    data: np.ndarray,
    steps: int,
    seed: int,
    recipe: str = "readme",
    saving: Saving | None = None,
) -> Trained:
    """ebmkit's own trainer, on the CPU (left alone, it takes a GPU if there is one)."""
    torch.manual_seed(seed)
    energy, loss = ebm.nets.MLPEnergy(dim=2, hidden=HIDDEN), loss_function(method, recipe)
    averaged = method == "pcd" and recipe == "example"

    def look(_: int, out: LossOutput) -> None:
        trainer.history.clear()  # thousands of numbers to save, of which none is used again
        if watch.fails(out.metrics["loss"]):
            raise Stop

    trainer = ebm.Trainer(
        energy,
        loss,
        lr=RATE,
        device="cpu",
        ema_decay=EMA_DECAY if averaged else None,
        callback=look,
    )
    points = torch.as_tensor(data, dtype=torch.float32)
    watch = Watch([*energy.parameters(), *loss.parameters()], {"trainer": trainer}, saving)
    with suppress(Stop):
        trainer.fit(points, steps=steps - watch.steps, batch_size=BATCH, verbose=False)
    return watch.trained(trainer.ema.module if averaged else energy)


def loss_function(method: str, recipe: str) -> nn.Module:
    """What neither README nor examples name stays at the class's default."""
    if method in ("cd-10", "pcd"):
        return contrastive_divergence(method == "pcd", ENERGY_REG[recipe])
    return {
        # No example trains with it; it has no settings.
        "sm-exact": ebm.ExactScoreMatching,
        # bench_ssm of examples/benchmark_losses.py: one projection, variance reduced.
        "sm-sliced": ebm.SlicedScoreMatching,
        # Its default, and of research/02-training-methods.md, 8.1; the examples have ladders only.
        "sm-denoising": lambda: ebm.DenoisingScoreMatching(sigma=0.1),
        # bench_nce of examples/benchmark_losses.py; the noise is standard normal, which its
        # docstring finds "fine for standardized low-dimensional data".
        "nce": lambda: ebm.NoiseContrastiveEstimation(noise_ratio=4),
    }[method]()


def contrastive_divergence(persistent: bool, energy_reg: float) -> nn.Module:
    """README, `bench_cd` and `bench_pcd`; of a buffer's chains 5% begin anew, its default."""
    steps = PERSISTENT_STEPS if persistent else 10
    sampler = ebm.LangevinDynamics(step_size=LANGEVIN_STEP, steps=steps)
    buffer = ebm.ReplayBuffer(BUFFER, (2,)) if persistent else None
    return ebm.ContrastiveDivergence(sampler, buffer=buffer, energy_reg=energy_reg)


def double_well(x: Tensor) -> Tensor:
    """ebmkit has none: TorchEBM's formula, since an energy may be any function there."""
    return WORK.height * (x.pow(2) - WORK.well**2).pow(2).sum(dim=-1)


def samplers(batch: int, dim: int, steps: int, device: str) -> dict[str, Callable[[], None]]:
    """ebmkit's samplers with its default step sizes; it has no faster way to offer.

    (research/03-api-design.md: "no custom CUDA/triton kernels, no torch.compile guarantees".)
    """
    x = torch.as_tensor(initial_batch(batch, dim), device=device)
    langevin = ebm.LangevinDynamics(step_size=WORK.langevin_step, steps=steps)
    hmc = ebm.HMC(step_size=WORK.hmc_step, leapfrog_steps=WORK.leapfrog_steps, steps=steps)
    return {
        "langevin": to_completion(lambda: langevin.sample(double_well, x), device),
        "hmc": to_completion(lambda: hmc.sample(double_well, x), device),
    }
