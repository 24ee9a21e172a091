"""Networks and pictures that several tests share: the real ones, if any."""

import lzma
import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def data_folder():
    if "FENCHEL_DATA" not in os.environ:
        pytest.skip("set FENCHEL_DATA to a folder with inception/*.npz and cifar10/*.xz")
    return Path(os.environ["FENCHEL_DATA"])


@pytest.fixture(scope="session")
def cifar_pictures(data_folder):
    """The first 8 of CIFAR-10's test set."""
    packed = lzma.decompress((data_folder / "cifar10" / "test_00.xz").read_bytes())
    codes = np.frombuffer(packed, np.uint8).reshape(3, -1, 32, 32)[:, :8].astype(int)
    residuals = np.where(codes % 2, -(codes + 1) // 2, codes // 2)
    green = unpredicted(residuals[0], 0)
    red, blue = (green + unpredicted(plane, green) for plane in residuals[1:])
    return np.stack([red, green, blue], axis=-1).astype(np.uint8)


def unpredicted(residuals, base):
    """A plane (n, 32, 32), from what the median of west, north and their plane leaves of it.

    Green is a byte, that wraps around; red and blue are differences to it, and their sum wraps.
    """
    plane = np.zeros_like(residuals)
    base = np.broadcast_to(base, plane.shape)
    for i, j in np.ndindex(32, 32):
        west = plane[:, i, j - 1] if j else plane[:, i - 1, j] if i else 0 * plane[:, 0, 0]
        north = plane[:, i - 1, j] if i else west
        corner = plane[:, i - 1, j - 1] if i and j else west
        guess = np.median([west, north, west + north - corner], axis=0).astype(int)
        plane[:, i, j] = (guess + residuals[:, i, j] + base[:, i, j]) % 256 - base[:, i, j]
    return plane
