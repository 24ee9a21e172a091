"""Pictures of a fitted model; nothing here trains."""

from fenchel.report.energies import energies_figure, save_energies
from fenchel.report.figures import (
    density_figure,
    moments_figure,
    samples_figure,
    save,
    training_figure,
)
from fenchel.report.picture_grid import grid, save_animation, save_picture, strip

__all__ = [
    "density_figure",
    "energies_figure",
    "grid",
    "moments_figure",
    "samples_figure",
    "save",
    "save_animation",
    "save_energies",
    "save_picture",
    "strip",
    "training_figure",
]
