"""`fit`: from data to a fitted model, in one call."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from fenchel.build import CUSTOM, Parts, build
from fenchel.config import Config
from fenchel.data import Samples, Standardiser, load_samples
from fenchel.dynamics import AbstractDynamics
from fenchel.errors import InputError
from fenchel.report.progress import Bar, Silent, Watcher
from fenchel.result import Fit
from fenchel.runs import RunFolder
from fenchel.shapes import Potential
from fenchel.starts import AbstractStart, Empirical
from fenchel.train import Batches, Block, Info, TrainState, run, stuck

KEPT_POINTS = 10_000  # of the data, in models whose sampler begins at data points


def fit(
    x: ArrayLike | str | Path,
    method: str | None = None,
    *,
    steps: int | None = None,
    seed: int | None = None,
    potential: str | Potential | None = None,
    start: str | AbstractStart | None = None,
    dynamics: str | AbstractDynamics | None = None,
    config: Config | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | Watcher = True,
) -> Fit:
    """Fit p(x) ∝ exp f(x) to data by maximum likelihood, and learn its sampler with it.

    **Arguments:**

    - `x`: an (n, d) array, the path of a .npy, .npz, .csv or .parquet file, or a toy's name.
    - `method`: how; `"ade"`.
    - `steps`, `seed`: iterations (3,000), and what all randomness comes from (0).
    - `potential`, `start`, `dynamics`: a name, or an object of your own. A potential sees
      standardised data; any callable from a point to a scalar will do.
    - `config`: every other choice; what is given beside it takes precedence.
    - `out`: a folder for the run: configuration, metrics, checkpoints and the model.
    - `resume`: go on from the newest checkpoint in `out`, as if never stopped.
    - `progress`: show a bar (or tell a watcher of your own).

    **Returns:** a `Fit`.
    """
    folder = None if out is None else RunFolder(Path(out))
    if resume and folder is None:
        raise InputError("There is no run to resume: give its folder as `out`.")
    if config is None:
        resumed = folder.read_record()["config"] if resume and folder else {}
        config = Config.from_dict(resumed)
    config = config.with_values(
        method=method,
        seed=seed,
        training__steps=steps,
        potential__kind=_kind(potential),
        start__kind=_kind(start),
        dynamics__kind=_kind(dynamics),
    )
    if config.seed < 0:
        raise InputError(f"The seed is {config.seed}: give a whole number from 0 on.")
    own = {"potential": potential, "start": start, "dynamics": dynamics}
    own = {name: part for name, part in own.items() if part is not None and _is_own(part)}
    samples = load_samples(x, seed=config.seed)
    return _train(samples, config, own, folder, resume, _watcher(progress))


def _train(
    samples: Samples,
    config: Config,
    own: dict[str, Any],
    folder: RunFolder | None,
    resume: bool,
    watcher: Watcher,
) -> Fit:
    standardiser = Standardiser.of(samples.x)
    data = jnp.asarray(standardiser.forward(samples.x), jnp.result_type(float))
    parts = build(config, data.shape[1], **own)
    state = parts.maxmin.init(parts.potential, parts.sampler, data, jax.random.key(config.seed))
    if folder is not None and resume:
        state = folder.resume(config, samples, state)
    elif folder is not None:
        folder.begin(config, samples, state)
    state = _learn(parts, state, data, config, folder, watcher)
    fitted = _result(state, data, standardiser, config, samples)
    if folder is not None:
        fitted.save(folder.path)
    return fitted


def _learn(
    parts: Parts,
    state: TrainState,
    data: jax.Array,
    config: Config,
    folder: RunFolder | None,
    watcher: Watcher,
) -> TrainState:
    training = config.training
    batches = Batches(data, training.batch, training.noise)
    blocks = run(parts.maxmin, state, batches, training.steps, training.block)
    with watcher, closing(blocks):
        watcher.begin(training.steps, int(state.iteration))
        began = time.perf_counter()
        for block in blocks:
            state, now = block.state, time.perf_counter()
            row = metrics_row(block, parts.sampler.exact, now - began)
            began = now
            watcher.block(row)
            if folder is not None:
                folder.write_metrics(row)
                # A run that is about to be stopped must not be resumed as if all were well.
                healthy = stuck(parts.maxmin, block.info) is None
                if healthy and _is_due(block, training.checkpoint_every, training.steps):
                    folder.write_checkpoint(state)
    return state


def _is_due(block: Block, every: int, steps: int) -> bool:
    length = len(block.info.ess)
    crossed = block.iteration // every > (block.iteration - length) // every
    return crossed or block.iteration == steps


def metrics_row(block: Block, exact: bool, seconds: float) -> dict[str, Any]:
    """A block's health as one row of metrics: means over its iterations, and its events."""
    info, length = block.info, len(block.info.ess)
    row: dict[str, Any] = {"iteration": block.iteration}
    for name in ("log_likelihood", "log_partition", "log_partition_lower", "ess", "acceptance"):
        row[name] = _mean(getattr(info, name))
    if not exact:
        # Without a density the weights mean nothing; better no figure than a wrong one.
        row |= dict.fromkeys(("log_likelihood", "log_partition", "log_partition_lower", "ess"))
    for name in ("lag", "trust", "strain", "potential_grad_norm", "sampler_grad_norm"):
        row[name] = _mean(getattr(info, name))
    row["potential_rate"] = float(info.potential_rate[-1])
    row["sampler_rate"] = float(info.sampler_rate[-1])
    row["iterations_per_second"] = length / seconds
    row["events"] = _events(info, block.iteration - length)
    row["skipped"] = sum(event.get("dropped", 0) for event in row["events"])
    return row


def _mean(values: np.ndarray) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else None


def _events(info: Info, first: int) -> list[dict[str, Any]]:
    """One event for each iteration in which the guard dropped a step of the potential's or the
    sampler's, or the steps of flows were shortened."""
    events: list[dict[str, Any]] = []
    for who in ("potential", "sampler"):
        dropped, rate = getattr(info, f"dropped_{who}"), getattr(info, f"{who}_rate")
        for index in np.flatnonzero(dropped):
            when, how_many = first + int(index) + 1, int(dropped[index])
            how = {"dropped": how_many, "learning_rate": float(rate[index])}
            events.append({"iteration": when, "who": who, **how})
    for index in np.flatnonzero(info.shortened):
        strain, when = float(info.strain[index]), first + int(index) + 1
        events.append({"iteration": when, "who": "flow", "strain": strain})
    return sorted(events, key=lambda event: event["iteration"])


def _result(
    state: TrainState,
    data: jax.Array,
    standardiser: Standardiser,
    config: Config,
    samples: Samples,
) -> Fit:
    f, sampler = state.averaged()
    # Only a start at data points needs them; for the others one row of zeros carries the shape. A
    # random part is kept, since files are often sorted.
    points = jnp.zeros((1, data.shape[1]))
    if isinstance(getattr(sampler, "start", None), Empirical):
        points = jax.random.permutation(jax.random.key(config.seed), data)[:KEPT_POINTS]
    return Fit(
        f, sampler, state.sampler_state, points, standardiser, config, samples.columns, samples.name
    )


def _is_own(part: object) -> bool:
    return not isinstance(part, str)


def _kind(part: object) -> str | None:
    """A part's name in the configuration."""
    if part is None or isinstance(part, str):
        return part
    return CUSTOM


def _watcher(progress: bool | Watcher) -> Watcher:
    if isinstance(progress, bool):
        return Bar() if progress else Silent()
    return progress
