"""Pictures in files of their own: one, or a folder of them, by Pillow."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fenchel.data.reading import reading
from fenchel.errors import InputError

PICTURE_KINDS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")

# The formats of these names and no others, whatever a file is called: for one of the others Pillow
# would start a program to read it.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_GREY = ("1", "L", "LA")
_COLOUR = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")


def read_picture_folder(
    folder: Path, apart: tuple[str, ...] = ()
) -> tuple[NDArray[np.uint8], None]:
    """All pictures of a folder, then of the folders in it, as of one a class, by their names.

    They are grey only if all are. Folders in it that are called as one of `apart` are left out.
    """
    inner = sorted(path for path in folder.iterdir() if _is_folder(path))
    classes = [path for path in inner if path.name not in apart]
    paths = [path for place in (folder, *classes) for path in _pictures_in(place)]
    if not paths:
        others = "".join(f" but {path.name}" for path in inner if path.name in apart)
        raise InputError(
            f"Neither {folder} nor any folder in it{others} holds picture files; give a folder of "
            f"files that end in {', '.join(PICTURE_KINDS)}, or of such folders."
        )
    pictures = _of_one_size(paths)
    channels = max(picture.shape[2] for picture in pictures)
    return np.stack([np.broadcast_to(p, (*p.shape[:2], channels)) for p in pictures]), None


def read_picture_file(path: Path) -> tuple[NDArray[np.uint8], None]:
    return read_picture(path)[None], None


def read_picture(path: Path) -> NDArray[np.uint8]:
    """One file's picture, (h, w, 1) or (h, w, 3), the way up that its camera meant."""
    with reading(path, "a picture"), Image.open(path, formats=_FORMATS) as file:
        return _pixels(ImageOps.exif_transpose(file), path)


def _pictures_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _is_picture(path))


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURE_KINDS and not _is_hidden(path) and path.is_file()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not _is_hidden(path)


def _is_hidden(path: Path) -> bool:
    # Systems leave files of their own behind, such as ._a.png beside a.png.
    return path.name.startswith(".")


def _of_one_size(paths: list[Path]) -> list[NDArray[np.uint8]]:
    pictures: list[NDArray[np.uint8]] = []
    for path in paths:
        picture = read_picture(path)
        if pictures and picture.shape[:2] != pictures[0].shape[:2]:
            raise InputError(
                f"{path} is {_size(picture)} and {paths[0]} is {_size(pictures[0])}; crop or "
                "resize all pictures to one size."
            )
        pictures.append(picture)
    return pictures


def _pixels(image: Image.Image, path: Path) -> NDArray[np.uint8]:
    if image.mode not in _GREY + _COLOUR:
        raise InputError(
            f"{path} does not have 8 bits a channel (its mode is {image.mode}); save it with 8."
        )
    if image.has_transparency_data and np.asarray(image.convert("RGBA"))[..., 3].min() < 255:
        raise InputError(f"{path} is transparent in parts; save it on a background.")
    pixels = np.array(image.convert("L" if image.mode in _GREY else "RGB"))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _size(picture: NDArray) -> str:
    height, width, _ = picture.shape
    return f"{width} x {height}"
