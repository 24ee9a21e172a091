"""A model on disk: a JSON description and a safetensors file. Data, never code."""

import hashlib
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from fenchel.arrays import from_table, to_table
from fenchel.build import build_model
from fenchel.config import Config
from fenchel.data import Standardiser
from fenchel.dynamics import AbstractDynamics
from fenchel.errors import InputError
from fenchel.files import replace_text, require_space, written_whole
from fenchel.parameters import learnt
from fenchel.result import Fit
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Potential
from fenchel.starts import AbstractStart
from fenchel.version import __version__

FORMAT = "fenchel-model"
DESCRIPTION, ARRAYS = "model.json", "model.safetensors"
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
    folder.mkdir(parents=True, exist_ok=True)
    with written_whole(folder / ARRAYS) as partial:
        save_file(table, partial)
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
    description = _read_description(folder)
    config = Config.from_dict(description["config"])
    columns = tuple(description["columns"])
    parts = build_model(config, len(columns), potential=potential, start=start, dynamics=dynamics)
    points = jnp.zeros((description["points"], len(columns)))
    state = parts.sampler.init(points, jax.random.key(0))
    like = (parts.potential, _settled(parts.sampler), state, points)
    arrays = _read_arrays(folder, description["sha256"])
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
        raise InputError(
            f"{folder} holds no model ({DESCRIPTION} is missing): give a run's folder."
        )
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        if description["format"] != FORMAT:
            raise KeyError("format")
        numbers = [*description["mean"], *description["scale"], description["points"]]
        complete = all(isinstance(number, int | float) for number in numbers)
        lengths = {len(description[name]) for name in ("columns", "mean", "scale")}
        if not complete or len(lengths) != 1 or not description.keys() >= NAMES:
            raise ValueError("columns")
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(
            f"{path} is damaged, or not a model of this library ({type(error).__name__}: {error}): "
            "save the model again."
        ) from None
    return description


def _digest(folder: Path) -> str:
    """Ties the two files to each other: the description holds the scaling of these arrays."""
    return hashlib.sha256((folder / ARRAYS).read_bytes()).hexdigest()


def _read_arrays(folder: Path, digest: str) -> dict[str, np.ndarray]:
    path = folder / ARRAYS
    try:
        if _digest(folder) != digest:
            raise ValueError("it is not the one that the description was written for")
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path} is missing or damaged ({error}): save the model again.") from None
