"""The same iteration in plain PyTorch: what one would write without Fenchel.

One iteration is 5 steps of the sampler (planar layers, then HMC with a fresh momentum a step, with
gradients through the dynamics) and one importance-weighted, truncated step of f, as in
`fenchel.train.MaxMin` without the anchor. `benchmarks.speed.check_same_work` holds it to the same
log weights and the same gradients.

It is meant to be fast: everything is batched, the planar layers' constants and the momenta's
densities are computed for all layers and steps at once, f's weights are frozen while the sampler
learns, no second-order graph is built in the step of f, and data and draws go through f together.
It also does *less* than Fenchel, which in addition looks for non-finite steps, waits for the
sampler, tempers degenerate weights, keeps moving averages, decays its learning rates and records
the health of each iteration.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

SLOPE = 0.2  # of the planar layers' leaky ReLU
LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Sizes:
    """The work of one iteration."""

    dim: int = 2
    width: int = 128
    depth: int = 3
    base_scale: float = 1.5
    layers: int = 10
    steps: int = 5
    step_size: float = 0.1
    clip_norm: float = 20.0
    batch: int = 100
    sampler_steps: int = 5
    noise: float = 0.01
    potential_rate: float = 2e-3
    start_rate: float = 1e-3
    dynamics_rate: float = 5e-3


class Potential(nn.Module):
    """An MLP with SiLU on the Gaussian base measure."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        widths = [sizes.dim, *[sizes.width] * sizes.depth]
        layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.SiLU())]
        self.net = nn.Sequential(*layers, nn.Linear(sizes.width, 1))
        self.inverse_variance = sizes.base_scale**-2
        self.constant = sizes.dim * (math.log(sizes.base_scale) + 0.5 * LOG_2PI)

    def forward(self, x: Tensor) -> Tensor:
        base = -0.5 * self.inverse_variance * x.square().sum(-1) - self.constant
        return self.net(x).squeeze(-1) + base


class Start(nn.Module):
    """Planar layers, the coordinates flipped after each, then the base measure's scale."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes
        self.params = nn.Parameter(0.01 * torch.randn(sizes.layers, 2 * sizes.dim + 1))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """From standard normal noise to points and their log densities."""
        dim, x, inputs = self.sizes.dim, z, []
        weights, free, biases = self.params.split((dim, dim, 1), dim=-1)
        inner = (free * weights).sum(-1, keepdim=True)
        gain = -1 + torch.log1p(functional.softplus(inner))  # what keeps a layer invertible
        scales = free + (gain - inner) * weights / weights.square().sum(-1, keepdim=True)
        layers = zip(weights.unbind(), scales.unbind(), biases.unbind(), strict=True)
        for weight, scale, bias in layers:
            inputs.append(x @ weight + bias)
            x = (x + functional.leaky_relu(inputs[-1], SLOPE).unsqueeze(-1) * scale).flip(-1)
        slopes = torch.where(torch.stack(inputs) < 0, SLOPE, 1.0)
        log_det = torch.log1p(slopes * gain).sum(0) + dim * math.log(self.sizes.base_scale)
        return self.sizes.base_scale * x, -0.5 * (z.square() + LOG_2PI).sum(-1) - log_det


class Dynamics(nn.Module):
    """Step sizes and momentum scales, for each step and dimension."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        shape = (sizes.steps, sizes.dim)
        self.log_step_sizes = nn.Parameter(torch.full(shape, math.log(sizes.step_size)))
        self.log_scales = nn.Parameter(torch.zeros(shape))


class Twin:
    """Everything that learns, and `iterations` to make it.

    `compile` is a mode of `torch.compile` ("default", or "reduce-overhead" with CUDA graphs), for
    draws and losses as wholes; or "parts", for the start and f's own loss only; None runs eagerly.
    """

    def __init__(
        self, data: np.ndarray, sizes: Sizes, device: str = "cpu", compile: str | None = None
    ):
        self.sizes, self.device = sizes, torch.device(device)
        self.data = torch.as_tensor(data, dtype=torch.float32, device=self.device)
        self.potential = Potential(sizes).to(self.device)
        self.start = Start(sizes).to(self.device)
        self.dynamics = Dynamics(sizes).to(self.device)
        self.potential_optimiser = torch.optim.Adam(
            self.potential.parameters(), lr=sizes.potential_rate
        )
        self.sampler_optimiser = torch.optim.Adam(
            [
                {"params": list(self.start.parameters()), "lr": sizes.start_rate},
                {"params": list(self.dynamics.parameters()), "lr": sizes.dynamics_rate},
            ]
        )
        self.value_and_score, self.still_score = self._by_autograd, self._still_by_autograd
        self.sampler_loss, self.potential_loss = self._sampler_loss, self._potential_loss
        self.draw_still = self._draw_still
        self.begin_step: Callable[[], None] = lambda: None
        if compile is not None:
            self._compile(compile)

    def iterations(self, count: int) -> float:
        """Learn for a while, wait until the device is done, and return f's last loss."""
        for _ in range(count):
            self.potential.requires_grad_(False)
            for _ in range(self.sizes.sampler_steps):
                self.begin_step()
                self._learn(self.sampler_optimiser, self.sampler_loss, *self.noise())
            self.begin_step()
            points = self.batch()
            x, log_rest = self.draw_still(*self.noise())
            self.potential.requires_grad_(True)
            loss = self._learn(self.potential_optimiser, self.potential_loss, points, x, log_rest)
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return loss.item()

    def batch(self) -> Tensor:
        """Points of the data, with its noise floor."""
        shape = (self.sizes.batch,)
        points = self.data[torch.randint(len(self.data), shape, device=self.device)]
        return points + self.sizes.noise * torch.randn_like(points)

    def noise(self) -> tuple[Tensor, Tensor]:
        """Standard normal noise for the start, and for every momentum."""
        shape = (self.sizes.steps + 1, self.sizes.batch, self.sizes.dim)
        noise = torch.randn(shape, device=self.device)
        return noise[0], noise[1:]

    def draw(self, z: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(x, f(x), minus the momenta's cost minus log q), with gradients to the sampler."""
        x, log_q = self.start(z)
        return self._move(x, log_q, noise, self.value_and_score)

    @torch.no_grad()
    def _draw_still(self, z: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The points and all of their log weights but f, without gradients."""
        x, log_q = self.start(z)
        x, _, log_rest = self._move(x, log_q, noise, self.still_score)
        return x, log_rest

    def log_weights(self, z: Tensor, noise: Tensor) -> Tensor:
        _, f, log_rest = self.draw(z, noise)
        return f + log_rest

    def _move(self, x, log_q, noise, value_and_score):
        step_sizes = self.dynamics.log_step_sizes.exp().unbind()
        momenta = self.dynamics.log_scales.exp().unsqueeze(1) * noise
        f, score = value_and_score(x)
        force, spent = self._clip(score), []
        for v, step_size in zip(momenta.unbind(), step_sizes, strict=True):
            v = v + step_size / 2 * force
            x = x + step_size * v
            f, score = value_and_score(x)
            force = self._clip(score)
            spent.append(v + step_size / 2 * force)
        # A momentum is drawn and paid for under Gaussians, whose constants cancel.
        log_v = -0.5 * noise.square().sum((0, -1)) - self.dynamics.log_scales.sum()
        kinetic = 0.5 * torch.stack(spent).square().sum((0, -1))
        return x, f, -kinetic - log_v - log_q

    def _clip(self, score: Tensor) -> Tensor:
        limit = self.sizes.clip_norm
        return score * (limit / torch.linalg.vector_norm(score, dim=-1, keepdim=True).clamp(limit))

    def _sampler_loss(self, z: Tensor, noise: Tensor) -> Tensor:
        return -self.log_weights(z, noise).mean()

    def _potential_loss(self, points: Tensor, x: Tensor, log_rest: Tensor) -> Tensor:
        on_data, on_draws = self.potential(torch.cat([points, x])).split(len(x))
        return torch.logsumexp(on_draws + log_rest, 0) - math.log(len(x)) - on_data.mean()

    def _by_autograd(self, x: Tensor) -> tuple[Tensor, Tensor]:
        f = self.potential(x)
        return f, torch.autograd.grad(f.sum(), x, create_graph=True)[0]

    def _by_transform(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The same by `torch.func`, which `torch.compile` can look into."""

        def total(x: Tensor) -> tuple[Tensor, Tensor]:
            f = self.potential(x)
            return f.sum(), f

        score, f = torch.func.grad(total, has_aux=True)(x)
        return f, score

    @torch.enable_grad()
    def _still_by_autograd(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        f = self.potential(x)
        return f.detach(), torch.autograd.grad(f.sum(), x)[0]

    def _learn(self, optimiser: torch.optim.Optimizer, loss: Callable, *inputs: Tensor) -> Tensor:
        optimiser.zero_grad(set_to_none=True)
        value = loss(*inputs)
        value.backward()
        optimiser.step()
        return value.detach()

    def _compile(self, mode: str) -> None:
        if mode == "parts":  # f itself cannot be: compiled code has no second derivative
            self.start.compile()
            self.potential_loss = torch.compile(self._potential_loss)
            return
        self.value_and_score = self.still_score = self._by_transform
        self.sampler_loss = torch.compile(self._sampler_loss, mode=mode)
        self.draw_still = torch.compile(self._draw_still, mode=mode)
        self.potential_loss = torch.compile(self._potential_loss, mode=mode)
        # CUDA graphs may reuse the memory of what the last step put out only from here on.
        self.begin_step = torch.compiler.cudagraph_mark_step_begin

    def values(self, points: np.ndarray, z: np.ndarray, noise: np.ndarray) -> dict[str, np.ndarray]:
        """Log weights and gradients with this noise, by the functions that learning uses."""
        points, z, noise = (torch.as_tensor(a, device=self.device) for a in (points, z, noise))
        parameters = self.parameters()
        for parameter in parameters.values():
            parameter.grad = None
        self.potential.requires_grad_(False)
        self.begin_step()
        self.sampler_loss(z, noise).backward()
        x, log_rest = (a.clone() for a in self.draw_still(z, noise))
        self.potential.requires_grad_(True)
        self.potential_loss(points, x, log_rest).backward()
        with torch.no_grad():
            values = {"log_weights": self.potential(x) + log_rest}
        values |= {name: parameter.grad for name, parameter in parameters.items()}
        return {name: value.cpu().numpy() for name, value in values.items()}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over parameters, by the names that `parameters` has."""
        with torch.no_grad():
            for name, parameter in self.parameters().items():
                parameter.copy_(torch.as_tensor(np.array(arrays[name])))

    def parameters(self) -> dict[str, nn.Parameter]:
        modules = {"potential": self.potential, "start": self.start, "dynamics": self.dynamics}
        return {
            f"{part}.{name}": parameter
            for part, module in modules.items()
            for name, parameter in module.named_parameters()
        }
