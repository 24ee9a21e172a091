"""Arguments and options that several commands share, and how their texts are read."""

from pathlib import Path
from typing import Annotated

import typer

from fenchel.errors import InputError

Data = Annotated[
    str,
    typer.Argument(
        help="A toy's name, or a .npy, .npz, .csv, .parquet file; of pictures an .npz file, a "
        "folder of picture files, CIFAR-10's binary files, or idx files."
    ),
]
Part = Annotated[
    str | None,
    typer.Option(
        help="Of pictures in two parts: train or test; test unless given. Others are undivided."
    ),
]
Run = Annotated[Path, typer.Argument(help="The folder that `fenchel fit --out` made.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a machine to read.")]
Networks = Annotated[
    Path | None,
    typer.Option(help="For pictures: a folder with networks' weights, fid*.npz and slim*.npz."),
]
Counts = Annotated[
    str | None,
    typer.Option("--n", help="For pictures: how many samples, or several: 10000,50000."),
]


def counts(text: str | None) -> list[int] | None:
    """Whole numbers, as in 10000,50000."""
    if text is None:
        return None
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(
            f"The number of samples {text!r} is not a whole number, or several: write 10000,50000."
        ) from None


def ends(text: str | None) -> tuple[float, float] | None:
    """LOW,HIGH as two numbers."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"The domain {text!r} is not two numbers: write it as 0,1 or 0,inf."
        ) from None
    return low, high
