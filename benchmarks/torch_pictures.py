"""An iteration of the preset `cifar10-paper` in plain PyTorch, as one would write it alone.

One iteration is a draw (a deconvolutional generator with batch norm, then damped steps along f's
clipped score), the paper's objective on it and on a batch of data, one pass back through both, Adam
for f, generator and step sizes, moving averages of all of them, and one power iteration for f's
spectral norms. `benchmarks.image_check` holds it to Fenchel's values and gradients.

It is meant to be fast: weights are divided by their norms and rounded to bfloat16 once an
iteration, pictures are channels-last throughout, Adam and the averages are fused, data and draws go
through f together. It does *less* than Fenchel, which also looks for non-finite steps, waits for
the sampler and records the health of each iteration. The score comes from autograd or is written
out:

- `by_autograd`: what everyone writes. With `create_graph=True` PyTorch's second derivative of a
  convolution computes the weight's gradient as a convolution with a kernel as large as the picture,
  and carries the curvature of the leaky ReLU along, which is zero.
- `written_out`: the pass back through f as convolutions of its own, so that back-propagation
  through time is a first derivative. Nobody's first draft, but the fastest that we know of.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from fenchel.config import Config

SLOPE = 0.1  # of the leaky ReLUs, below zero
SMALLEST = 4  # pixels on a side, at which the generator begins
BEGINNING = 10  # power iterations for a fresh weight
WARM_UP = 3  # iterations before a capture: optimisers, cuDNN's choices and memory are then settled
HALVED = (1, 3)  # the layers of f after which a picture is halved
NCHW, NHWC = (0, 3, 1, 2), (0, 2, 3, 1)

Weights = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Sizes:
    """The work of one iteration."""

    shape: tuple[int, int, int]
    width: int
    scale: float
    generator_width: int
    latent: int
    spread: float
    first_momentum: float  # the standard deviation of the first momentum
    steps: int
    step_size: float
    damping: float
    clip: float
    box: tuple[float, float]
    precision: float
    batch: int
    through_time: bool
    entropy: float
    momentum: float
    potential_rate: float
    start_rate: float
    dynamics_rate: float
    first_moment: float
    dynamics_epsilon: float
    decay: float
    flips: bool
    dequantise: float
    dtype: torch.dtype

    @classmethod
    def of(cls, config: "Config", decay: float) -> "Sizes":
        """Those of Fenchel's configuration."""
        potential, start, training = config.potential, config.start, config.training
        dynamics, pictures = config.dynamics, config.pictures
        return cls(
            shape=tuple(pictures.shape),
            width=potential.width,
            scale=potential.scale,
            generator_width=start.width,
            latent=start.latent,
            spread=start.spread,
            first_momentum=start.momentum,
            steps=dynamics.steps,
            step_size=dynamics.step_size,
            damping=dynamics.damping,
            clip=dynamics.clip_value,
            box=tuple(dynamics.box),
            precision=dynamics.precisions[-1],
            batch=training.batch,
            through_time=training.gradient == "bptt",
            entropy=training.entropy,
            momentum=training.momentum,
            potential_rate=training.potential_rate,
            start_rate=training.start_rate,
            dynamics_rate=training.dynamics_rate,
            first_moment=training.first_moment,
            dynamics_epsilon=training.dynamics_epsilon,
            decay=decay,
            flips=pictures.flips,
            dequantise=pictures.dequantise,
            dtype=getattr(torch, potential.precision),
        )


class Spectral(nn.Module):
    """A weight (outputs, inputs, ...) to be divided by its largest singular value."""

    def __init__(self, *shape: int):
        super().__init__()
        self.weight = nn.Parameter(_fresh(*shape, inputs=int(np.prod(shape[1:]))))
        self.register_buffer("inner", torch.randn(self.weight[0].numel()))
        self.register_buffer("outer", torch.empty(shape[0]))
        for _ in range(BEGINNING):
            self.renew()

    def used(self) -> Tensor:
        return self.weight / (self.outer @ self.weight.flatten(1) @ self.inner)

    @torch.no_grad()
    def renew(self) -> None:
        matrix = self.weight.flatten(1)
        self.outer.copy_(functional.normalize(matrix @ self.inner, dim=0))
        self.inner.copy_(functional.normalize(matrix.T @ self.outer, dim=0))


class Potential(nn.Module):
    """The paper's f: five 3 x 3 convolutions, two halvings, a mean over pixels, one number."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        w = sizes.width
        widths = [sizes.shape[-1], w, 2 * w, 2 * w, 4 * w, 4 * w]
        self.layers = nn.ModuleList([Spectral(b, a, 3, 3) for a, b in pairwise(widths)])
        self.last = Spectral(1, widths[-1])
        self.biases = nn.ParameterList([torch.zeros(each) for each in (*widths[1:], 1)])
        self.scale, self.dtype = sizes.scale, sizes.dtype

    def used(self) -> Weights:
        """All weights as the net uses them: once an iteration."""
        weights = [layer.used() for layer in (*self.layers, self.last)]
        return [
            (_rounded(weight, self.dtype), bias.to(self.dtype))
            for weight, bias in zip(weights, self.biases, strict=True)
        ]

    def forward(self, weights: Weights, x: Tensor) -> Tensor:
        """Of pictures (n, height, width, channels)."""
        y = x.permute(NCHW).to(self.dtype)
        for index, (weight, bias) in enumerate(weights[:-1]):
            y = functional.leaky_relu(functional.conv2d(y, weight, bias, padding=1), SLOPE)
            y = functional.avg_pool2d(y, 2) if index in HALVED else y
        weight, _ = weights[-1]  # small, and in full precision: f is a log density
        return self.scale * (y.float().mean((2, 3)) @ weight[0].float() + self.biases[-1])

    def by_autograd(self, weights: Weights, x: Tensor, through_time: bool) -> Tensor:
        with torch.enable_grad():
            if not through_time:
                weights = [(w.detach(), b.detach()) for w, b in weights]
                x = x.detach().requires_grad_()
            total = self(weights, x).sum()
            return torch.autograd.grad(total, x, create_graph=through_time)[0]

    def written_out(self, weights: Weights, x: Tensor, through_time: bool) -> Tensor:
        with torch.set_grad_enabled(through_time):
            inputs = self._inputs(weights, x)
            size = self.scale / inputs[-1][0, 0].numel()
            push = (size * weights[-1][0].float()).to(self.dtype)[:, :, None, None]
            push = push.expand_as(inputs[-1])
            for index in reversed(range(len(inputs))):
                if index in HALVED:
                    push = functional.interpolate(push, scale_factor=2.0) / 4
                push = torch.ops.aten.leaky_relu_backward(push, inputs[index], SLOPE, False)
                push = functional.conv_transpose2d(push, weights[index][0], padding=1)
            return push.permute(NHWC).float()

    @torch.no_grad()
    def _inputs(self, weights: Weights, x: Tensor) -> list[Tensor]:
        """Of each leaky ReLU: their signs are all that the score knows of x."""
        y, inputs = x.permute(NCHW).to(self.dtype), []
        for index, (weight, bias) in enumerate(weights[:-1]):
            inputs.append(functional.conv2d(y, weight, bias, padding=1))
            y = functional.leaky_relu(inputs[-1], SLOPE)
            y = functional.avg_pool2d(y, 2) if index in HALVED else y
        return inputs

    def renew(self) -> None:
        for layer in (*self.layers, self.last):
            layer.renew()


class Generator(nn.Module):
    """A dense layer; doublings, each with a batch norm and a leaky ReLU; a convolution."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        height, width, channels = sizes.shape
        count = _doublings(height, width)
        widths = [sizes.generator_width * 2**power for power in range(count, -1, -1)]
        self.small = (height >> count, width >> count, widths[0])
        self.dense = nn.Parameter(
            _fresh(sizes.latent, int(np.prod(self.small)), inputs=sizes.latent)
        )
        self.dense_bias = nn.Parameter(torch.zeros(self.dense.shape[1]))
        pairs = list(pairwise(widths))
        self.doublings = nn.ParameterList([_fresh(a, b, 2, 2, inputs=a) for a, b in pairs])
        self.biases = nn.ParameterList([torch.zeros(b) for _, b in pairs])
        self.gains = nn.ParameterList([torch.ones(b) for _, b in pairs])
        self.shifts = nn.ParameterList([torch.zeros(b) for _, b in pairs])
        self.last = nn.Parameter(
            0.1 * _fresh(2 * channels, widths[-1], 3, 3, inputs=9 * widths[-1])
        )
        self.last_bias = nn.Parameter(torch.zeros(2 * channels))
        self.dtype = sizes.dtype

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Means of the pixels, and what their deviations come from."""
        cast = lambda tensor: tensor.to(self.dtype)  # noqa: E731
        y = torch.addmm(cast(self.dense_bias), cast(z), cast(self.dense))
        y = y.view(-1, *self.small).permute(NCHW)
        blocks = zip(self.doublings, self.biases, self.gains, self.shifts, strict=True)
        for weight, bias, gain, shift in blocks:
            weight = _rounded(weight, self.dtype)
            y = functional.conv_transpose2d(y, weight, cast(bias), stride=2)
            y = functional.batch_norm(y, None, None, gain, shift, training=True)
            y = functional.leaky_relu(y, SLOPE)
        weight = _rounded(self.last, torch.float32)  # as Fenchel's, in full precision
        y = functional.conv2d(y.float(), weight, self.last_bias, padding=1).permute(NHWC)
        mean, spread = y.chunk(2, dim=-1)
        return mean.tanh(), spread


class Twin:
    """Everything that learns, and one `iteration` of it. `score` is one of the potential's two."""

    def __init__(self, data: np.ndarray, sizes: Sizes, score: str, device: str = "cpu"):
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")  # TF32, for what is not bfloat16
        self.sizes, self.device = sizes, torch.device(device)
        self.data = torch.as_tensor(data, device=self.device).view(-1, *sizes.shape)
        self.potential = Potential(sizes).to(self.device)
        self.generator = Generator(sizes).to(self.device)
        log_step_size = torch.full(sizes.shape, float(np.log(sizes.step_size)))
        self.log_step_size = nn.Parameter(log_step_size.to(self.device))
        self.score: Callable[[Weights, Tensor, bool], Tensor] = getattr(self.potential, score)
        self.learnt = list(self.parameters().values())
        self.averages = [parameter.detach().clone() for parameter in self.learnt]
        self.optimiser = self._optimiser()

    def iteration(self) -> Tensor:
        """Learn once; the objective's value."""
        value = self.objective(self.batch(), *self.noise())
        # Not `backward`: its accumulation remembers streams, which a capture may not mix.
        for parameter, grad in zip(
            self.learnt, torch.autograd.grad(value, self.learnt), strict=True
        ):
            parameter.grad = grad.contiguous()  # as the parameters are: fused Adam asks for it
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.averages, self.learnt, 1 - self.sizes.decay)
        self.potential.renew()
        return value.detach()

    def objective(self, points: Tensor, z: Tensor, noise: Tensor, v_noise: Tensor) -> Tensor:
        """E_data f - E[f(x_T) - kinetic - log q] up to constants: f ascends, all others descend."""
        sizes, weights = self.sizes, self.potential.used()
        mean, spread = self.generator(z)
        deviation = sizes.spread * spread.sigmoid()
        x, v = self.move(weights, mean + deviation * noise, sizes.first_momentum * v_noise)
        on_data, on_draws = self.potential(weights, torch.cat([points, x])).split(len(x))
        kinetic = 0.5 * sizes.precision * v.square().sum((1, 2, 3))
        log_q = -deviation.log().sum((1, 2, 3))
        return on_data.mean() - (on_draws - sizes.momentum * kinetic - sizes.entropy * log_q).mean()

    def move(self, weights: Weights, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The damped steps."""
        sizes, step_size = self.sizes, self.log_step_size.exp()
        for _ in range(sizes.steps):
            push = self.score(weights, x, sizes.through_time).clamp(-sizes.clip, sizes.clip)
            v = torch.addcmul(sizes.damping * v, step_size, push)
            x = (x + v).clamp(*sizes.box)
        return x, v

    def batch(self) -> Tensor:
        """Pictures of the data, every second one in a mirror, their levels spread over a cell."""
        sizes = self.sizes
        rows = torch.randint(len(self.data), (sizes.batch,), device=self.device)
        levels = self.data[rows]
        if sizes.flips:
            chosen = torch.rand(sizes.batch, 1, 1, 1, device=self.device) < 0.5
            levels = torch.where(chosen, levels.flip(2), levels)
        within = sizes.dequantise * torch.rand(levels.shape, device=self.device)
        return 2 * (levels + within) / (255 + sizes.dequantise) - 1

    def noise(self) -> tuple[Tensor, Tensor, Tensor]:
        """Standard normal: the latent variable, the pixels' noise, the momentum."""
        pixels = (self.sizes.batch, *self.sizes.shape)
        shapes = ((self.sizes.batch, self.sizes.latent), pixels, pixels)
        z, noise, v = (torch.randn(shape, device=self.device) for shape in shapes)
        return z, noise, v

    def parameters(self) -> dict[str, nn.Parameter]:
        """What is learnt, by name."""
        modules = {"potential": self.potential, "generator": self.generator}
        table = {
            f"{part}.{name}": parameter
            for part, module in modules.items()
            for name, parameter in module.named_parameters()
        }
        return table | {"log_step_size": self.log_step_size}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over parameters and singular vectors, by their names."""
        buffers = {f"potential.{name}": each for name, each in self.potential.named_buffers()}
        with torch.no_grad():
            for name, tensor in (self.parameters() | buffers).items():
                tensor.copy_(torch.as_tensor(np.array(arrays[name])))

    def _optimiser(self) -> torch.optim.Optimizer:
        sizes, on_gpu = self.sizes, self.device.type == "cuda"
        groups: list[dict[str, Any]] = [
            {
                "params": list(self.potential.parameters()),
                "lr": sizes.potential_rate,
                "maximize": True,
            },
            {"params": list(self.generator.parameters()), "lr": sizes.start_rate},
            {
                "params": [self.log_step_size],
                "lr": sizes.dynamics_rate,
                "eps": sizes.dynamics_epsilon,
            },
        ]
        betas = (sizes.first_moment, 0.999)
        return torch.optim.Adam(groups, betas=betas, fused=on_gpu, capturable=on_gpu)


class Eager:
    """Called, it learns for a block and waits until that is done; the last value."""

    def __init__(self, twin: Twin):
        self.iteration, self.device = twin.iteration, twin.device

    def __call__(self, block: int) -> float:
        for _ in range(block):
            value = self.iteration()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return value.item()


class Captured:
    """Likewise, with the whole iteration as one CUDA graph."""

    def __init__(self, twin: Twin):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                twin.iteration()
        torch.cuda.current_stream().wait_stream(side)
        self.twin, self.graph = twin, torch.cuda.CUDAGraph()
        # JAX's threads are none of this capture's business.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.value = twin.iteration()

    def __call__(self, block: int) -> float:
        for _ in range(block):
            self.graph.replay()
        torch.cuda.synchronize()
        return self.value.item()


def compiled(twin: Twin) -> Eager:
    """The written-out score by `torch.compile`, which has CUDA graphs of its own."""
    mode = "reduce-overhead" if twin.device.type == "cuda" else "default"
    twin.score = torch.compile(twin.potential.written_out, mode=mode)
    return Eager(twin)


def release() -> int:
    """Hand back what nobody refers to any more; the bytes that are still in use."""
    gc.collect()
    if not torch.cuda.is_available():
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def memory_peak() -> int | None:
    """Bytes in use at most since `release`; None where they are not counted."""
    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None


def _fresh(*shape: int, inputs: int) -> Tensor:
    """With He's variance."""
    return torch.randn(shape) * (2 / inputs) ** 0.5


def _rounded(weight: Tensor, dtype: torch.dtype) -> Tensor:
    form = torch.channels_last if weight.ndim == 4 else torch.contiguous_format
    return weight.to(dtype, memory_format=form)


def _doublings(height: int, width: int) -> int:
    """How often a picture can be halved."""
    count = 0
    while all(s % 2 ** (count + 1) == 0 and s >> (count + 1) >= SMALLEST for s in (height, width)):
        count += 1
    return count
