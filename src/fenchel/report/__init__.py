"""Pictures of a fitted model; nothing here trains."""

from fenchel.report.figures import (
    density_figure,
    moments_figure,
    samples_figure,
    save,
    training_figure,
)
from fenchel.report.pictures.grid import grid, save_animation, save_picture, strip
from fenchel.report.pictures.histograms import energies_figure, save_energies

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
