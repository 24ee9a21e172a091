"""Pictures of a fitted model; nothing here trains."""

from fenchel.report.figures import (
    density_figure,
    moments_figure,
    samples_figure,
    save,
    training_figure,
)

__all__ = ["density_figure", "moments_figure", "samples_figure", "save", "training_figure"]
