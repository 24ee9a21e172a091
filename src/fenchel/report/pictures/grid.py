"""Many small pictures side by side as one, still or moving, and how it is written."""

import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fenchel.errors import InputError
from fenchel.files import refuse_unwritable, written_whole

Picture = NDArray[np.uint8]

GAP = 2
PAPER = 255  # the gaps are white, as the page that the picture is likely to be shown on
ZOOM = 2
SECONDS = 0.1  # that a frame is shown
LAST_SECONDS = 1.5
MOST_BYTES = 1_000_000
COLOURS = (256, 128, 64, 32, 16)


def grid(pictures: Picture, columns: int | None = None, gap: int = GAP) -> Picture:
    """Pictures (n, h, w, c) row by row as one (height, width, c), about square by default."""
    if pictures.ndim != 4 or pictures.size == 0 or pictures.dtype != np.uint8:
        raise InputError(
            f"Pictures to be shown are {pictures.dtype}{list(pictures.shape)}; "
            "give at least one, as uint8 (n, h, w, c)."
        )
    count, height, width, channels = pictures.shape
    columns = math.ceil(math.sqrt(count)) if columns is None else columns
    rows = -(-count // columns)
    # Every cell is a picture with its gap to the right and below; the outer gaps are cut off.
    cells = np.full((rows * columns, height + gap, width + gap, channels), PAPER, np.uint8)
    cells[:count, :height, :width] = pictures
    table = cells.reshape(rows, columns, *cells.shape[1:]).swapaxes(1, 2)
    whole = table.reshape(rows * (height + gap), columns * (width + gap), channels)
    return whole[: len(whole) - gap, : whole.shape[1] - gap]


def strip(frames: Picture, gap: int = GAP) -> Picture:
    """Frames (steps, n, h, w, c) as one picture: a row a picture, its steps from left to right."""
    steps = len(frames)
    return grid(frames.swapaxes(0, 1).reshape(-1, *frames.shape[2:]), steps, gap)


def save_picture(picture: Picture, path: str | Path, zoom: int = ZOOM) -> None:
    """Write one picture (h, w, c) as a PNG file, each of its pixels as a square of `zoom`."""
    refuse_unwritable(Path(path))
    with written_whole(Path(path)) as partial:
        partial.write_bytes(picture_bytes(picture, zoom))


def picture_bytes(picture: Picture, zoom: int = ZOOM) -> bytes:
    """The same as the bytes of that file."""
    file = io.BytesIO()
    _image(_enlarged(picture, zoom)).save(file, format="PNG", optimize=True)
    return file.getvalue()


def save_animation(
    frames: Picture, path: str | Path, columns: int | None = None, zoom: int = 1
) -> None:
    """Write frames (steps, n, h, w, c) as a moving grid: a .gif file, or a .png of many frames.

    A GIF has at most 256 colours, and down to 16 where it would be larger than a megabyte; a PNG is
    exact, whatever its size. A zoom costs colours, so by default the viewer is left to enlarge.
    """
    if len(frames) == 0:
        raise InputError("An animation has no frames; give at least one.")
    grids = np.stack([grid(frame, columns) for frame in frames])
    encoders = {".gif": _gif, ".png": _apng, ".apng": _apng}
    encode = encoders.get(Path(path).suffix.lower())
    if encode is None:
        raise InputError(f"{path} is no name for an animation; end it in {', '.join(encoders)}.")
    refuse_unwritable(Path(path))
    with written_whole(Path(path)) as partial:
        partial.write_bytes(encode(grids, zoom))


def _gif(grids: Picture, zoom: int) -> bytes:
    """With as many colours as a megabyte allows."""
    for colours in COLOURS:
        content = _encoded(_in_colours(grids, colours, zoom), "GIF")
        if len(content) <= MOST_BYTES:
            break
    return content


def _apng(grids: Picture, zoom: int) -> bytes:
    return _encoded([_image(_enlarged(each, zoom)) for each in grids], "PNG")


def _in_colours(grids: Picture, colours: int, zoom: int) -> list[Image.Image]:
    """All frames in one palette, so that what stands still does not flicker."""
    height, width = grids.shape[1:3]
    below_each_other = _image(_fewer_levels(grids).reshape(-1, *grids.shape[2:]))
    reduced = below_each_other.quantize(colours, dither=Image.Dither.NONE)
    frames = (
        reduced.crop((0, top, width, top + height)) for top in range(0, reduced.height, height)
    )
    size = (zoom * width, zoom * height)
    return [frame.resize(size, Image.Resampling.NEAREST) for frame in frames]


def _fewer_levels(grids: Picture) -> Picture:
    """Colours with 5 bits a channel, still from 0 to 255; greys are few enough as they are.

    The search for a palette takes as long as there are colours. This is six times faster, and what
    it loses is little beside what the palette loses.
    """
    if grids.shape[-1] == 1:
        return grids
    return (grids & np.uint8(0b11111000)) | (grids >> np.uint8(5))


def _encoded(images: list[Image.Image], kind: str) -> bytes:
    durations = [1000 * SECONDS] * (len(images) - 1) + [1000 * LAST_SECONDS]
    file = io.BytesIO()
    # Without end (a loop of 0); the last frame, which is the result, is held for longer.
    images[0].save(file, kind, save_all=True, append_images=images[1:], duration=durations, loop=0)
    return file.getvalue()


def _enlarged(picture: Picture, zoom: int) -> Picture:
    return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def _image(picture: Picture) -> Image.Image:
    grey = picture.shape[-1] == 1
    return Image.fromarray(np.ascontiguousarray(picture[..., 0] if grey else picture))
