"""Particles on their way: from the start's draws through every step of the dynamics."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fenchel.dynamics import scaled
from fenchel.report.page import marks
from fenchel.report.page.axes import Axes
from fenchel.report.page.clouds import density_line
from fenchel.report.page.draws import Draws
from fenchel.report.page.elements import figure, section
from fenchel.report.page.markup import Markup, tag
from fenchel.report.page.plane import DensityMap, plane_axes
from fenchel.result import Fit
from fenchel.samplers import Embedding, Tuned

PARTICLES = 400
MOST_FRAMES = 121
BACKDROP_DOTS = 1_000
HEIGHT = 200.0
STRIP = 0.3  # of a line's plot, from below, in which its particles are scattered
NOTHING = "There is nothing to animate: "


class Trajectories(NamedTuple):
    """The section, and the numbers that its script moves the particles by."""

    section: Markup
    numbers: dict[str, Any] | None


def trajectories(fit: Fit, draws: Draws, plane: DensityMap | None) -> Trajectories:
    reason = _reason_for_none(fit)
    frames = None if reason else trace(fit, PARTICLES, fit.config.seed)
    if frames is not None and len(frames) == 1:
        reason = "this sampler has no dynamics, its start is all of it."
    if reason or frames is None:
        return Trajectories(_section(NOTHING + reason), None)
    axes, backdrop = _stage(fit, draws, plane)
    label = f"{frames.shape[1]} particles, moved by the dynamics over the model."
    lead = (
        "Particles as the start gives them, and after each step of the dynamics, which are driven "
        "by f."
    )
    if fit.sampler.exact:
        lead += " They are the raw sampler's: no weights correct them."
    picture = _player(axes.svg("What the particles move over.", *backdrop), label, len(frames))
    caption = (
        f"{frames.shape[1]} particles, {len(frames) - 1} steps{_which(fit)}. A line leads to each "
        "from where it was a step before."
    )
    shown = figure(picture, caption, kind="single")
    return Trajectories(_section(lead, shown), _numbers(fit, frames, axes))


def trace(fit: Fit, n: int, seed: int, most: int = MOST_FRAMES) -> np.ndarray:
    """(steps + 1, n, d) in the data's units: n particles of the raw sampler.

    Of more than so many steps some are left out, the first and the last never.
    """
    embedding, state = _embedding(fit)
    pick_key, key = jax.random.split(jax.random.key(seed))
    rows = jax.random.randint(pick_key, (n,), 0, fit.points.shape[0])
    frames = np.asarray(embedding.trace(fit.f, fit.points[rows], state, key), np.float64)
    chosen = np.unique(np.linspace(0, len(frames) - 1, min(len(frames), most)).astype(int))
    frames = fit.standardiser.inverse(frames[chosen])
    return frames[:, np.isfinite(frames).all(axis=(0, 2))]


def _reason_for_none(fit: Fit) -> str:
    """Why there are no trajectories; nothing if there are."""
    if fit.standardiser.counting:
        return "discrete points lie on one another."
    if not isinstance(_embedding(fit)[0], Embedding):
        return "this sampler is not made of a start and dynamics."
    return ""


def _embedding(fit: Fit) -> tuple[Any, Any]:
    """The sampler and its state, with the step sizes that it tuned itself to."""
    if not isinstance(fit.sampler, Tuned):
        return fit.sampler, fit.sampler_state
    state = fit.sampler_state
    return scaled(fit.sampler.sampler, jnp.exp(state.log_factor)), state.inner


def _stage(fit: Fit, draws: Draws, plane: DensityMap | None) -> tuple[Axes, list[Markup]]:
    if fit.dim == 1:
        axes, drawn, _ = density_line(fit, draws)
        return axes, drawn[-1:] if fit.has_log_partition else drawn[:1]
    if plane is not None:
        return plane.axes, [plane.shading()]
    # Columns of unlike units: no height is the right one.
    axes = plane_axes(draws.data[:, :2], fit.columns[:2])._replace(height=HEIGHT)
    return axes, [marks.dots(axes, draws.data[:, :2], "dots faint", BACKDROP_DOTS)]


def _which(fit: Fit) -> str:
    return f"; the first two of {fit.dim} columns, over the data" if fit.dim > 2 else ""


def _player(stage: Markup, label: str, frames: int) -> Markup:
    canvas = tag("canvas", role="img", aria_label=label, data_frame="0")
    slider = tag(
        "input", type="range", id="step", min="0", max=frames - 1, value="0", aria_label="Step"
    )
    button = tag("button", "Play", type="button", id="play", aria_label="Play the steps")
    shown = tag("output", "start", id="step-name", for_="step")
    controls = tag("div", button, slider, shown, class_="controls")
    return tag("div", tag("div", stage, canvas, class_="stage"), controls, id="player")


def _numbers(fit: Fit, frames: np.ndarray, axes: Axes) -> dict[str, Any]:
    x = axes.x.unit(frames[..., 0])
    y = 1 - axes.y.unit(frames[..., 1]) if fit.dim > 1 else _scattered(x)
    # Up to one plot's width outside of it, as 16-bit numbers.
    places = np.clip((np.stack([x, y], axis=-1) + 1) / 3, 0, 1)
    steps = len(frames) - 1
    return {
        "frames": steps + 1,
        "particles": frames.shape[1],
        "places": marks.encoded(np.round(65_535 * places).astype("<u2").tobytes()),
        "area": axes.area,
        "names": ["start", *(f"step {step} of {steps}" for step in range(1, steps + 1))],
    }


def _scattered(x: np.ndarray) -> np.ndarray:
    """A height for each particle of a line, so that they do not hide each other."""
    heights = np.random.default_rng(0).uniform(1 - STRIP, 0.98, x.shape[1])
    return np.broadcast_to(heights, x.shape)


def _section(lead: str, *children: Markup) -> Markup:
    return section("trajectories", "Trajectories", lead, *children)
