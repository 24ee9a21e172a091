"""A model on disk: a JSON description and a safetensors file. Data, never code."""

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from fenchel.arrays import from_table, to_table
from fenchel.build import build_model
from fenchel.config import Config
from fenchel.data import Standardiser
from fenchel.dynamics import AbstractDynamics
from fenchel.errors import InputError
from fenchel.files import make_folder, replace_text, require_space, written_whole
from fenchel.parameters import learnt
from fenchel.result import Fit
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Potential
from fenchel.starts import AbstractStart
from fenchel.version import __version__

FORMAT = "fenchel-model"
DESCRIPTION, ARRAYS = "model.json", "model.safetensors"
WRITE_AGAIN = "save the model again, or resume its run, which writes it once more"
NAMES = {"name", "config", "counting", "sha256"}  # what a description must also have


def save(fit: Fit, path: str | Path) -> None:
    """Write `fit` into the folder `path`."""
    folder = Path(path)
    table = to_table((fit.f, fit.sampler, fit.sampler_state, fit.points))
    # What is learnt must be finite; what is given (the end of a half-line) need not be.
    learnt_table = to_table((learnt((fit.f, fit.sampler)), fit.sampler_state, fit.points))
    bad = [name for name, array in learnt_table.items() if not np.isfinite(array).all()]
    if bad:
        raise InputError(f"The model is not finite in {bad[0]}: it is not written.")
    require_space(folder, sum(array.nbytes for array in table.values()))
    make_folder(folder)
    with written_whole(folder / ARRAYS) as partial:
        partial.write_bytes(safetensors.save(table))  # its own writer hides it from other users
    description = {**_describe(fit), "sha256": _digest(folder)}
    replace_text(folder / DESCRIPTION, json.dumps(description, indent=2) + "\n")


def load(
    path: str | Path,
    *,
    potential: Potential | None = None,
    start: AbstractStart | None = None,
    dynamics: AbstractDynamics | None = None,
) -> Fit:
    """Read a model from its folder.

    Parts that were the user's own objects are not described by the file: pass ones of the same
    structure, and their numbers are filled in.
    """
    folder = Path(path)
    try:
        description = _read_description(folder)
        arrays = _read_arrays(folder, description["sha256"])
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read ({error.strerror}).") from None
    config = Config.from_dict(description["config"])
    columns = tuple(description["columns"])
    parts = build_model(config, len(columns), potential=potential, start=start, dynamics=dynamics)
    points = jnp.zeros((description["points"], len(columns)))
    state = parts.sampler.init(points, jax.random.key(0))
    like = (parts.potential, _settled(parts.sampler), state, points)
    f, sampler, state, points = from_table(arrays, like, str(folder / ARRAYS))
    standardiser = Standardiser(
        np.array(description["mean"]), np.array(description["scale"]), description["counting"]
    )
    return Fit(f, sampler, state, points, standardiser, config, columns, description["name"])


def _settled(sampler: AbstractSampler) -> AbstractSampler:
    """A sampler of the form in which it was saved, with any numbers."""
    if not isinstance(sampler, Embedding):
        return sampler
    shapes = eqx.filter_eval_shape(lambda key: sampler.settled(key), jax.random.key(0))

    def filled(leaf: Any) -> Any:
        is_shape = isinstance(leaf, jax.ShapeDtypeStruct)
        return jnp.zeros(leaf.shape, leaf.dtype) if is_shape else leaf

    return jax.tree.map(filled, shapes)


def _describe(fit: Fit) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": __version__,
        "name": fit.name,
        "columns": list(fit.columns),
        "mean": fit.standardiser.mean.tolist(),
        "scale": fit.standardiser.scale.tolist(),
        "counting": fit.standardiser.counting,
        "points": fit.points.shape[0],
        "config": fit.config.to_dict(),
    }


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if not path.is_file():
        raise InputError(_why_there_is_none(folder))
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        if description["format"] != FORMAT:
            raise KeyError("format")
        numbers = [*description["mean"], *description["scale"], description["points"]]
        complete = np.isfinite(numbers).all() and min(description["scale"]) > 0
        lengths = {len(description[name]) for name in ("columns", "mean", "scale")}
        if not complete or len(lengths) != 1 or not description.keys() >= NAMES:
            raise ValueError("columns")
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} is damaged, or not a model of this library: {WRITE_AGAIN}."
        ) from None
    return description


def _why_there_is_none(folder: Path) -> str:
    if (folder / "checkpoints").is_dir():
        return (
            f"The run {folder} is not finished, so it has no model yet: go on with it, as in "
            f"`fenchel fit DATA --out {shlex.quote(str(folder))} --resume`."
        )
    return f"{folder} holds no model ({DESCRIPTION} is missing): give a run's folder."


def _digest(folder: Path) -> str:
    """Ties the two files to each other: the description holds the scaling of these arrays."""
    return hashlib.sha256((folder / ARRAYS).read_bytes()).hexdigest()


def _read_arrays(folder: Path, digest: str) -> dict[str, np.ndarray]:
    path = folder / ARRAYS
    if not path.is_file():
        raise InputError(f"{path} is missing: {WRITE_AGAIN}.")
    if _digest(folder) != digest:
        raise InputError(
            f"{path} is damaged, or not the one that {DESCRIPTION} was written for: {WRITE_AGAIN}."
        )
    try:
        return safetensors.load_file(path)
    except SafetensorError as error:
        raise InputError(f"{path} is damaged ({error}): {WRITE_AGAIN}.") from None
