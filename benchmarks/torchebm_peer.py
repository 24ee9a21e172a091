"""TorchEBM 0.8.9 as its README and examples use it.

It has no noise contrastive estimation. The rest below is the README's "Contrastive divergence",
"Score matching", "Sampling an energy" and "Hamiltonian Monte Carlo"; the repository's
examples/20-training have the same numbers, on two moons. Three things are not theirs: the net has
three hidden layers (the README's has one, the examples' have two), the data are standardised (their
moons have standard deviations of 0.9 and 0.5), and the steps may be more (theirs: 1,000 for both
kinds of CD, 2,000 for denoising). With one hidden layer, on their data, both kinds of CD were sound
after 1,000 steps; with the examples' own two, both had collapsed.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torchebm.core import BaseModel, DoubleWellModel
from torchebm.losses import (
    ContrastiveDivergence,
    DenoisingScoreMatching,
    ScoreMatching,
    SlicedScoreMatching,
)
from torchebm.samplers import HamiltonianMonteCarlo, LangevinDynamics

from benchmarks.peer import WORK, Saving, Trained, Watch, initial_batch, to_completion

VERSION = "0.8.9"  # what the comments speak of
METHODS = ("cd-10", "pcd", "sm-exact", "sm-sliced", "sm-denoising")
WIDTH, DEPTH = 128, 3
RATE, BATCH = 1e-3, 256  # README, "Contrastive divergence": Adam; the examples have no other
MASK = float(np.float32(0.1))


class MLPEnergy(BaseModel):
    """The README's class, with more layers."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(2, WIDTH), nn.SiLU()]
        for _ in range(DEPTH - 1):
            layers += [nn.Linear(WIDTH, WIDTH), nn.SiLU()]
        self.net = nn.Sequential(*layers, nn.Linear(WIDTH, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).squeeze(-1)


def train(
    method: str, data: np.ndarray, steps: int, seed: int, saving: Saving | None = None
) -> Trained:
    """The README's loop. (Its trainers are in neither the README, the examples nor the exports.)"""
    torch.manual_seed(seed)
    energy, points = MLPEnergy(), torch.as_tensor(data, dtype=torch.float32)
    loss_of = loss_function(method, energy)  # it holds the energy, and the chains if they persist
    optimiser = torch.optim.Adam(energy.parameters(), lr=RATE)
    watch = Watch(energy.parameters(), {"loss": loss_of, "optimiser": optimiser}, saving)
    for _ in range(steps - watch.steps):
        loss = without_samples(loss_of(points[torch.randint(len(points), (BATCH,))]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if watch.fails(unmasked(loss)):
            break
    return watch.trained(energy)


def without_samples(returned: Tensor | tuple[Tensor, Tensor]) -> Tensor:
    """`ContrastiveDivergence` returns its negative samples beside the loss."""
    return returned[0] if isinstance(returned, tuple) else returned


def unmasked(loss: Tensor) -> float:
    """`ContrastiveDivergence` puts 0.1 in place of a loss that is not finite, and goes on."""
    return float("nan") if loss.item() == MASK else loss.item()


def loss_function(method: str, energy: MLPEnergy) -> nn.Module:
    """From a batch to a loss. What the README does not name stays at the class's default."""
    if method in ("cd-10", "pcd"):
        return contrastive_divergence(energy, persistent=method == "pcd")
    return {  # README, "Score matching", word for word
        "sm-exact": lambda: ScoreMatching(model=energy, hessian_method="exact"),
        "sm-sliced": lambda: SlicedScoreMatching(model=energy, n_projections=5),
        "sm-denoising": lambda: DenoisingScoreMatching(model=energy, noise_scale=0.1),
    }[method]()


def contrastive_divergence(energy: MLPEnergy, persistent: bool) -> nn.Module:
    """README, "Contrastive divergence"; examples/20-training/01-mcmc-losses agree.

    By default the loss also has 0.001 times the mean squared energies, and so cannot pass -500: a
    run that ends there has collapsed, with finite numbers only. By default too the persistent
    chains start at the origin, give or take 0.01, take 100 steps before the first batch, and are
    never begun anew.
    """
    sampler = LangevinDynamics(model=energy, step_size=0.1, noise_scale=1.0)
    kind = {"persistent": True, "buffer_size": 8192} if persistent else {}
    loss = ContrastiveDivergence(model=energy, sampler=sampler, k_steps=10, **kind)
    # The chains are made at the first batch; in a saved run they must be there to be loaded.
    loss.register_load_state_dict_pre_hook(lambda *_: loss.initialize_buffer((2,)))
    return loss


def samplers(batch: int, dim: int, steps: int, device: str) -> dict[str, Callable[[], None]]:
    """TorchEBM's samplers on its double well, without gradients of their own and without traces.

    Its documentation (developer_guide/performance.md) names torch.compile as a mode of its
    benchmarks and recommends it nowhere; on a CPU that mode (`apply_mode`, of the whole call) took
    1.5 to 1.8 times as long. On a GPU there is also "langevin-fused", a Triton kernel for the
    whole chain on this one energy, which the package contains as a "proof of concept", neither
    exported nor documented.
    """
    x = torch.as_tensor(initial_batch(batch, dim), device=device)
    model = DoubleWellModel(barrier_height=WORK.height, b=WORK.well, device=device)
    langevin = LangevinDynamics(
        model=model, step_size=WORK.langevin_step, noise_scale=1.0, device=device
    )
    hmc = HamiltonianMonteCarlo(
        model=model,
        step_size=WORK.hmc_step,
        n_leapfrog_steps=WORK.leapfrog_steps,
        device=device,
    )
    runs: dict[str, Callable[[], object]] = {
        "langevin": lambda: langevin.sample(x=x, n_steps=steps),
        "hmc": lambda: hmc.sample(x=x, n_steps=steps),
    }
    if torch.device(device).type == "cuda":
        runs["langevin-fused"] = fused_langevin(x, steps)
    return {name: to_completion(run, device) for name, run in runs.items()}


def fused_langevin(x: Tensor, steps: int) -> Callable[[], object]:
    from torchebm.cuda.fused_langevin import doublewell_langevin_chain  # imports Triton

    return lambda: doublewell_langevin_chain(
        x.clone(),  # it works in place
        steps,
        WORK.langevin_step,
        barrier_height=WORK.height,
        b=WORK.well,
        seed=0,
    )
