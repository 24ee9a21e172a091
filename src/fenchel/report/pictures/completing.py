"""Completions on disk: the strip of all steps, an animation, and the pictures themselves."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fenchel.data import HALVES, half_mask, load_mask, load_part, require_shape
from fenchel.errors import InputError
from fenchel.report.pictures.grid import grid, save_animation, save_picture, strip
from fenchel.saving import load

SHOWN = 100  # pictures at most in the figures; all are in the file of completions


def complete_pictures(
    run: Path,
    source: str,
    out: Path,
    mask: str,
    part: str | None,
    n: int,
    rounds: int,
    seed: int,
    say: Callable[[str], None],
) -> dict[str, Path]:
    """Complete the first n pictures, and write what came of it into the folder."""
    if n < 1:
        raise InputError(f"{n} pictures were to be completed: ask for at least one.")
    fit = load(run)
    if fit.shape is None:
        raise InputError(f"{run} is a model of a table: completion is for pictures.")
    pictures = load_part(source, part)
    require_shape(pictures, fit.shape, source)
    hidden = half_mask(mask, fit.shape) if mask in HALVES else load_mask(mask, fit.shape)
    given = pictures.x[:n]
    say(f"{rounds} rounds of {len(given)} completions")
    frames = fit.complete(given, hidden, rounds=rounds, seed=seed)
    return _written(given, frames, out)


def _written(given: np.ndarray, frames: np.ndarray, out: Path) -> dict[str, Path]:
    out.mkdir(parents=True, exist_ok=True)
    names = {"steps": "steps.png", "animation": "steps.gif", "completed": "completed.npz"}
    files = {what: out / name for what, name in names.items()}
    shown = frames[:, :SHOWN]
    # Beside the steps, at the end of each row, what was hidden.
    save_picture(strip(np.concatenate([shown, given[None, :SHOWN]])), files["steps"])
    save_animation(shown, files["animation"], zoom=2)
    np.savez_compressed(files["completed"], x=frames[-1], given=given)
    files["grid"] = out / "completed.png"
    save_picture(grid(shown[-1]), files["grid"])
    return files
