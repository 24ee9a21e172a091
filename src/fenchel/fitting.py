"""`fit`: from data to a fitted model, in one call."""

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from fenchel.build import CUSTOM, DISCRETE, EMBEDDINGS, Parts, build, noise_floor
from fenchel.config import Config
from fenchel.data import (
    Pictures,
    Samples,
    Standardiser,
    check_pictures,
    load_pictures,
    load_samples,
)
from fenchel.drawing import Drawing
from fenchel.dynamics import AbstractDynamics
from fenchel.errors import InputError
from fenchel.estimators import AbstractEstimator, NoiseContrastive
from fenchel.inference import Seen
from fenchel.material import KEPT_POINTS, batches_of, material_of, noisy
from fenchel.picture_parts import is_of_pictures, picture_shape
from fenchel.presets import preset as preset_of
from fenchel.report.pictures.gallery import Gallery
from fenchel.report.progress import Bar, Silent, Watcher
from fenchel.result import Fit
from fenchel.runs import RunFolder
from fenchel.seeds import check_seed
from fenchel.shapes import Potential
from fenchel.starts import AbstractStart, begins_at_data
from fenchel.train import (
    AbstractBatches,
    Block,
    Minimise,
    TrainState,
    metrics_row,
    run,
    stuck,
)


def fit(
    x: ArrayLike | str | Path,
    method: str | AbstractEstimator | None = None,
    *,
    steps: int | None = None,
    seed: int | None = None,
    potential: str | Potential | None = None,
    start: str | AbstractStart | None = None,
    dynamics: str | AbstractDynamics | None = None,
    domain: tuple[float, float] | None = None,
    coordinates: str | None = None,
    preset: str | None = None,
    flips: bool | None = None,
    dequantise: float | None = None,
    config: Config | None = None,
    minutes: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | Watcher = True,
) -> Fit:
    """Fit p(x) ∝ exp f(x) to data by maximum likelihood, and learn its sampler with it.

    **Arguments:**

    - `x`: an (n, d) array, the path of a .npy, .npz, .csv or .parquet file, or a toy's name; for a
      net of pictures, what `fx.data.load_pictures` reads.
    - `method`: how: `"ade"`, or the name of a classical estimator (`fenchel methods` lists them),
      or an estimator of your own.
    - `steps`, `seed`: iterations (3,000), and what all randomness comes from (0).
    - `potential`, `start`, `dynamics`: a name, or an object of your own. A potential sees
      standardised data; any callable from a point to a scalar will do. For discrete data ask
      for `"ising"`, `"potts"`, `"rbm"`, or `"discrete"`, which takes the first or the second by
      the number of values.
    - `domain`: (low, high), where the data of every column can be; one end may be infinite.
    - `coordinates`: `"data"` for a potential that sees the data in their own units, which its
      parameters then have, instead of standardised.
    - `preset`: settings for pictures by their name in `fenchel.presets`, such as `"mnist"`.
    - `flips`, `dequantise`: of pictures, whether every second one is shown in a mirror, and how
      wide a cell (0 to 1) each grey level is spread over.
    - `config`: every other choice; what is given beside it takes precedence.
    - `minutes`: stop after so many, as if all steps were done; `resume` goes on from there.
    - `out`: a folder for the run: configuration, metrics, checkpoints and the model.
    - `resume`: go on from the newest checkpoint in `out`, as if never stopped.
    - `progress`: show a bar (or tell a watcher of your own).

    **Returns:** a `Fit`.
    """
    folder = None if out is None else RunFolder(Path(out))
    sitting = _Sitting(folder, resume, minutes, _watcher(progress))
    own = {"estimator": method, "potential": potential, "start": start, "dynamics": dynamics}
    own = {name: part for name, part in own.items() if part is not None and _is_own(part)}
    config = _beginning(config, preset, sitting).with_values(
        method=_kind(method),
        seed=None if seed is None else check_seed(seed),
        training__steps=steps,
        potential__kind=_kind(potential),
        start__kind=_kind(start),
        dynamics__kind=_kind(dynamics),
        potential__domain=domain,
        potential__coordinates=coordinates,
        pictures__flips=flips,
        pictures__dequantise=dequantise,
    )
    _check(config, method, start, dynamics)
    if is_of_pictures(config):
        samples: Samples | Pictures = load_pictures(x)
    else:
        _refuse_for_tables(config, flips=flips, dequantise=dequantise)
        samples = load_samples(x, seed=config.seed)
    return _train(samples, _settled(config, samples, own), own, sitting)


class _Sitting(NamedTuple):
    """Where a run is kept, whether it goes on, for how long, and who watches."""

    folder: RunFolder | None
    resume: bool
    minutes: float | None
    watcher: Watcher


def _beginning(config: Config | None, preset: str | None, sitting: _Sitting) -> Config:
    """The settings that others are laid over: given ones, a preset's, or those of a run."""
    folder, minutes = sitting.folder, sitting.minutes
    if sitting.resume and folder is None:
        raise InputError("There is no run to resume: give its folder as `out`.")
    if minutes is not None and not (minutes > 0 and folder is not None):
        raise InputError(
            f"The run is to stop after {minutes} minutes: give a positive number, and a folder as "
            "`out` from which it can go on."
        )
    if preset is not None and config is not None:
        raise InputError("A preset and a configuration were both given: leave one of them out.")
    if preset is not None:
        return preset_of(preset)
    if config is not None:
        return config
    resumed = folder.read_record()["config"] if sitting.resume and folder else {}
    return Config.from_dict(resumed)


def _check(config: Config, method: object, start: object, dynamics: object) -> None:
    """Refuse what does not go together, before any data are read."""
    check_seed(config.seed)
    if not isinstance(method, str | AbstractEstimator | None):
        raise InputError(f"The method is {method!r}: give a name or an estimator object.")
    if config.method not in EMBEDDINGS and (start or dynamics):
        raise InputError(
            f"A start or dynamics were given, and the method {config.method!r} learns no sampler: "
            "leave them out, or use ade."
        )
    if config.method == "nf" and dynamics not in (None, "none"):
        raise InputError("The method 'nf' is the embedding without dynamics: leave them out.")


def _refuse_for_tables(config: Config, **given: object) -> None:
    """Refuse what changes pictures where there are none."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} = {value} is for pictures, and {config.potential.kind!r} is a potential "
                "of tables: leave it out, or give a preset of pictures, such as mnist."
            )


def _settled(config: Config, samples: Samples | Pictures, own: dict[str, Any]) -> Config:
    """The configuration with what follows from the method and the data."""
    if isinstance(samples, Pictures):
        check_pictures(samples)
        return config.with_values(pictures__shape=samples.shape)
    estimator = own.get("estimator")
    if config.method == CUSTOM and estimator is None:
        raise InputError(
            "The estimator of this run was an object of your own, which no file describes: pass "
            "one of the same structure as `method=`."
        )
    if config.potential.domain is not None and (estimator is not None or config.training.noise):
        raise InputError(
            "A domain is kept to by methods given by name, and without a noise floor: leave out "
            "the domain, or the estimator object and training.noise."
        )
    if isinstance(estimator, NoiseContrastive):
        config = config.with_values(estimator__learns_constant=True)
    if config.method == "nf":
        config = config.with_values(dynamics__kind="none")
    if config.potential.kind in (*DISCRETE, "discrete"):
        count = int(np.ptp(samples.x)) + 1 if len(np.unique(samples.x)) > 2 else 2
        kind = "ising" if count == 2 else "potts"
        kind = kind if config.potential.kind == "discrete" else config.potential.kind
        count = max(count, config.potential.states)
        config = config.with_values(potential__kind=kind, potential__states=count)
    return config


def _train(
    samples: Samples | Pictures, config: Config, own: dict[str, Any], sitting: _Sitting
) -> Fit:
    material = material_of(config, samples, own)
    data, standardiser = material.points, material.standardiser
    parts = build(config, data.shape[1], domain=material.domain, scaling=standardiser, **own)
    # What is taken from the data before the run (noise, chains) sees them as the run will.
    floor = noise_floor(config, parts.potential, parts.learner)
    key = jax.random.key(config.seed)
    state = parts.learner.init(parts.potential, parts.sampler, noisy(data, floor, key), key)
    folder = sitting.folder
    if folder is not None and sitting.resume:
        state = folder.resume(config, samples, state)
    elif folder is not None:
        folder.begin(config, samples, state)
    batches = batches_of(config, samples, data, floor)
    state = _learn(parts, state, batches, config, sitting, _gallery(config, folder, standardiser))
    fitted = fitted_model(state, data, standardiser, config, material.columns, samples.name)
    fitted = replace(fitted, seen=_seen(parts, state, data))
    if folder is not None:
        fitted.save(folder.path)
    return fitted


def _gallery(
    config: Config, folder: RunFolder | None, standardiser: Standardiser
) -> Gallery | None:
    if folder is None or not is_of_pictures(config):
        return None
    return Gallery(folder.figures, picture_shape(config), standardiser)


def _learn(
    parts: Parts,
    state: TrainState,
    batches: AbstractBatches,
    config: Config,
    sitting: _Sitting,
    gallery: Gallery | None,
) -> TrainState:
    training, folder, watcher = config.training, sitting.folder, sitting.watcher
    exact = parts.sampler.exact
    weighted = exact and training.temperature(exact) == 1
    blocks = run(parts.learner, state, batches, training.steps, training.block)
    with watcher, closing(blocks):
        watcher.begin(training.steps, int(state.iteration))
        began = first = time.perf_counter()
        for block in blocks:
            state, now = block.state, time.perf_counter()
            row = metrics_row(block, weighted, now - began)
            watcher.block(row)
            began = now
            if folder is None:
                continue
            folder.write_metrics(row)
            over = sitting.minutes is not None and now - first >= 60 * sitting.minutes
            # A run that is about to be stopped must not be resumed as if all were well.
            healthy = stuck(parts.learner, block.info) is None
            if healthy and (over or _is_due(block, training.checkpoint_every, training.steps)):
                folder.write_checkpoint(state)
                if gallery is not None:
                    gallery.hang(state, block.iteration)
            if over:
                break
    return state


def _is_due(block: Block, every: int, steps: int) -> bool:
    length = len(block.info.ess)
    crossed = block.iteration // every > (block.iteration - length) // every
    return crossed or block.iteration == steps


def _seen(parts: Parts, state: TrainState, data: jax.Array) -> Seen:
    learner = parts.learner
    estimator = learner.estimator if isinstance(learner, Minimise) else None
    return Seen(data, estimator, state.estimator_state)


def fitted_model(
    state: TrainState,
    data: jax.Array,
    standardiser: Standardiser,
    config: Config,
    columns: tuple[str, ...],
    name: str,
) -> Fit:
    """What a run hands out: the moving averages, and what their sampler needs to draw."""
    key = jax.random.key(config.seed)
    f, sampler = state.handed_out(key)
    # Only a start at data points needs them; for the others one row of zeros carries the shape. A
    # random part is kept, since files are often sorted.
    points = jnp.zeros((1, data.shape[1]))
    if begins_at_data(sampler):
        points = jax.random.permutation(key, data)[:KEPT_POINTS]
    drawing = Drawing(f, sampler, state.sampler_state, points)
    ready = drawing.made_ready(int(state.iteration) * config.training.batch // 10, key)
    return Fit(f, sampler, ready.state, points, standardiser, config, columns, name)


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
