"""Every way in which pictures arrive, and what is said when they cannot be used."""

import gzip
import json
import pickle
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fenchel.data import (
    Pictures,
    check_pictures,
    half_mask,
    load_mask,
    load_part,
    load_pictures,
    parts_of,
)
from fenchel.errors import InputError

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (6, 5, 4), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
CIFAR = RNG.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
LABELS = np.arange(12, dtype=np.uint8) % 10


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(message: str):
    """The whole message is compared, so that each stays the sentence it was meant to be."""
    return pytest.raises(InputError, match=f"^{re.escape(message)}$")


def write_pictures(where: str, pictures, kind: str = "png") -> Path:
    Path(where).mkdir(parents=True, exist_ok=True)
    for number, picture in enumerate(pictures):
        Image.fromarray(picture).save(f"{where}/{number}.{kind}")
    return Path(where)


def records(pictures, labels) -> bytes:
    """CIFAR's own layout, written the long way."""
    return b"".join(
        bytes([label]) + b"".join(picture[..., channel].tobytes() for channel in range(3))
        for picture, label in zip(pictures, labels, strict=True)
    )


def write_cifar(where: str) -> Path:
    Path(where).mkdir()
    for number in range(5):
        rows = slice(2 * number, 2 * number + 2)
        content = records(CIFAR[rows], LABELS[rows])
        Path(where, f"data_batch_{number + 1}.bin").write_bytes(content)
    Path(where, "test_batch.bin").write_bytes(records(CIFAR[10:], LABELS[10:]))
    return Path(where)


def idx(array: np.ndarray) -> bytes:
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (GREY, GREY[..., None]),
        (GREY[..., None], GREY[..., None]),
        (GREY[:, None], GREY[..., None]),
        (COLOUR, COLOUR),
        (np.moveaxis(COLOUR, -1, 1), COLOUR),
        (COLOUR.astype(np.int64), COLOUR),
        (COLOUR[:1], COLOUR[:1]),
    ],
)
def test_arrays_of_every_shape(given, expected):
    pictures = load_pictures(given)
    np.testing.assert_array_equal(pictures.x, expected)
    assert (pictures.x.dtype, pictures.name, pictures.labels) == (np.uint8, "array", None)
    assert pictures.x.flags.c_contiguous


def test_pictures_are_a_copy():
    original = COLOUR.copy()
    load_pictures(original).x[0] = 0
    np.testing.assert_array_equal(original, COLOUR)


def test_rows_are_read_as_one_reads_and_come_back():
    pictures = load_pictures(COLOUR)
    assert (len(pictures), pictures.shape, pictures.dim) == (6, (5, 4, 3), 60)
    row, column, channel = 2, 3, 1
    np.testing.assert_array_equal(
        pictures.rows()[:, (row * 4 + column) * 3 + channel], COLOUR[:, row, column, channel]
    )
    back = Pictures.of_rows(pictures.rows(), pictures.shape)
    np.testing.assert_array_equal(back.x, COLOUR)


def test_rows_are_rounded_and_clipped():
    back = Pictures.of_rows([[-7.0, 0.4], [254.6, 1e9]], (1, 2, 1), "drawn")
    np.testing.assert_array_equal(back.rows(), [[0, 0], [255, 255]])
    assert back.name == "drawn"


def test_fingerprints_tell_pictures_apart():
    """By one level of one pixel, and by their shape; and they can be written down."""
    changed = COLOUR.copy()
    changed[5, 4, 3, 2] ^= 1
    same = [load_pictures(COLOUR).fingerprint(), load_pictures(COLOUR.copy()).fingerprint()]
    assert same[0] == same[1] == json.loads(json.dumps(same[0]))
    assert load_pictures(changed).fingerprint() != same[0]
    reshaped = COLOUR.reshape(6, 4, 5, 3)
    assert load_pictures(reshaped).fingerprint() != same[0]


def test_npz_has_parts_with_labels():
    np.savez(
        "a.npz", x_train=COLOUR, y_train=np.arange(6), x_test=GREY, y_test=np.ones((6, 1), int)
    )
    train, test = load_pictures("a.npz"), load_pictures("a.npz", "test")
    np.testing.assert_array_equal(train.x, COLOUR)
    np.testing.assert_array_equal(train.labels, np.arange(6))
    np.testing.assert_array_equal(test.x, GREY[..., None])
    np.testing.assert_array_equal(test.labels, np.ones(6))
    assert train.name == "a"


@pytest.mark.parametrize("name", ["x", "images", "data"])
def test_npz_knows_other_names(name):
    np.savez("a.npz", **{"other": np.zeros(3), name: COLOUR, "labels": np.arange(6)})
    pictures = load_pictures(Path("a.npz"))
    np.testing.assert_array_equal(pictures.x, COLOUR)
    np.testing.assert_array_equal(pictures.labels, np.arange(6))


def test_npz_takes_its_only_array_and_npy_its_own():
    np.savez("a.npz", faces=GREY)
    np.save("a.npy", GREY)
    for name in ("a.npz", "a.npy"):
        np.testing.assert_array_equal(load_pictures(name).x, GREY[..., None])


@pytest.mark.parametrize("kind", ["png", "bmp", "tif"])
@pytest.mark.parametrize("x", [GREY, COLOUR])
def test_a_folder_of_files_in_the_order_of_their_names(kind, x):
    write_pictures("faces", x, kind)
    Path("faces/notes.txt").write_text("not a picture")
    Path("faces/.hidden.png").write_text("nor this")
    pictures = load_pictures("faces")
    np.testing.assert_array_equal(pictures.x, x if x.ndim == 4 else x[..., None])
    assert pictures.name == "faces"


def test_a_folder_may_be_the_one_we_are_in(folder):
    write_pictures(".", GREY)
    assert load_pictures(".").name == folder.name


def test_a_jpeg_is_about_the_picture():
    smooth = np.linspace(0, 255, 16 * 16).reshape(16, 16).astype(np.uint8)
    write_pictures("faces", [smooth], "jpg")
    drawn = load_pictures("faces").x[0, ..., 0]
    assert np.abs(drawn.astype(int) - smooth).max() < 8


def test_grey_files_among_coloured_ones_become_coloured():
    write_pictures("mixed", [GREY[0], COLOUR[0]])
    pictures = load_pictures("mixed").x
    np.testing.assert_array_equal(pictures[0], np.repeat(GREY[0][..., None], 3, axis=2))
    np.testing.assert_array_equal(pictures[1], COLOUR[0])


@pytest.mark.parametrize("mode", ["RGBA", "P", "LA", "1"])
def test_modes_that_hold_the_same_picture(mode):
    """Opaque, with few colours: nothing is lost in any of them."""
    colours = np.array([[[255, 0, 0], [0, 0, 255]], [[255, 255, 255], [0, 0, 0]]], np.uint8)
    picture = colours if mode in ("RGBA", "P") else colours[1:, :, 0]
    Image.fromarray(picture).convert(mode).save("a.png")
    expected = picture if picture.ndim == 3 else picture[..., None]
    np.testing.assert_array_equal(load_pictures("a.png").x, expected[None])


def test_a_camera_held_sideways():
    exif = Image.Exif()
    exif[0x0112] = 6  # the orientation: to be turned by a quarter, clockwise
    Image.fromarray(GREY[0]).save("a.png", exif=exif)
    np.testing.assert_array_equal(load_pictures("a.png").x[0, ..., 0], np.rot90(GREY[0], -1))


def test_folders_called_train_and_test():
    write_pictures("faces/train", GREY[:4])
    write_pictures("faces/test", GREY[4:])
    np.testing.assert_array_equal(load_pictures("faces").x, GREY[:4, ..., None])
    np.testing.assert_array_equal(load_pictures("faces", "test").x, GREY[4:, ..., None])


def test_folders_of_classes_follow_what_lies_beside_them():
    for where, x in (("", GREY[:1]), ("cat", GREY[1:3]), ("dog", GREY[3:4]), ("train", GREY[4:])):
        write_pictures(f"faces/train/{where}", x)
    write_pictures("faces/test/cat", GREY[:2])
    write_pictures("faces/train/cat/deeper", COLOUR)
    write_pictures("faces/train/.thumbnails", COLOUR)
    np.testing.assert_array_equal(load_pictures("faces").x, GREY[..., None])
    np.testing.assert_array_equal(load_pictures("faces", "test").x, GREY[:2, ..., None])


def test_held_out_pictures_are_no_class_of_the_others():
    write_pictures("faces/test", GREY[:2])
    with refused(
        "Neither faces nor any folder in it but test holds picture files; give a folder of files "
        "that end in .png, .jpg, .jpeg, .bmp, .gif, .tif, .tiff, .webp, .ppm, .pgm, or of such "
        "folders."
    ):
        load_pictures("faces")
    write_pictures("faces/cat", GREY[2:])
    np.testing.assert_array_equal(load_pictures("faces").x, GREY[2:, ..., None])


def test_cifar_as_a_folder_and_as_a_file():
    where = write_cifar("cifar")
    train, test = load_pictures(where), load_pictures(where, "test")
    np.testing.assert_array_equal(train.x, CIFAR[:10])
    np.testing.assert_array_equal(train.labels, LABELS[:10])
    one = load_pictures(where / "test_batch.bin")
    for part in (test, one):
        np.testing.assert_array_equal(part.x, CIFAR[10:])
        np.testing.assert_array_equal(part.labels, LABELS[10:])


@pytest.mark.parametrize(("end", "packed"), [("", bytes), (".gz", gzip.compress)])
@pytest.mark.parametrize("dash", ["-", "."])
def test_idx_files_as_a_folder_and_one_by_one(end, packed, dash):
    for prefix, x in (("train", GREY[:4]), ("t10k", GREY[4:])):
        Path(f"{prefix}-images{dash}idx3-ubyte{end}").write_bytes(packed(idx(x)))
        Path(f"{prefix}-labels{dash}idx1-ubyte{end}").write_bytes(packed(idx(np.arange(len(x)))))
    train, test = load_pictures("."), load_pictures(".", "test")
    np.testing.assert_array_equal(train.x, GREY[:4, ..., None])
    np.testing.assert_array_equal(train.labels, np.arange(4))
    np.testing.assert_array_equal(test.x, GREY[4:, ..., None])
    np.testing.assert_array_equal(test.labels, np.arange(2))
    Path(f"t10k-labels{dash}idx1-ubyte{end}").unlink()
    one = load_pictures(f"t10k-images{dash}idx3-ubyte{end}")
    np.testing.assert_array_equal(one.x, test.x)
    assert one.labels is None


# --- arrays that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            np.array([[[0.0, 1.0]]], np.float32),
            "holds float32 values from 0 to 1; give whole numbers from 0 to 255, "
            "as in np.round(255 * x).astype(np.uint8).",
        ),
        (
            np.array([[[-1.0, 1.0]]]),
            "holds float64 values from -1 to 1; give whole numbers from 0 to 255.",
        ),
        (
            np.array([[[np.nan, 1.0]]]),
            "holds 1 values that are not finite; give whole numbers from 0 to 255.",
        ),
        (
            np.array([[[0, 256]]]),
            "holds int64 values from 0 to 256; give whole numbers from 0 to 255.",
        ),
        (
            np.array([[[-1, 0]]]),
            "holds int64 values from -1 to 0; give whole numbers from 0 to 255.",
        ),
        (GREY > 9, "holds bool values; give whole numbers from 0 to 255."),
        ([[["a"]]], "holds <U1 values; give whole numbers from 0 to 255."),
        ([[[None]]], "holds object values; give whole numbers from 0 to 255."),
        ([[[1, 2]], [[3]]], "is not a rectangular array; make its pictures equally large."),
        (np.ma.masked_equal(GREY, GREY[0, 0, 0]), "has masked values; fill them in first."),
        (np.zeros((0, 5, 4), np.uint8), "is empty, (0, 5, 4); give at least one picture."),
        (GREY[0], "has shape (5, 4); give (n, h, w), (n, h, w, 3) or (n, 3, h, w)."),
        (
            np.zeros((2, 5, 4, 4), int),
            "has shape (2, 5, 4, 4); give (n, h, w), (n, h, w, 3) or (n, 3, h, w).",
        ),
        (
            COLOUR[0],
            "has shape (5, 4, 3), which looks like one picture; "
            "put an axis of pictures before it, as in x[None].",
        ),
    ],
)
def test_arrays_that_are_no_pictures(x, message):
    with refused(f"The array {message}"):
        load_pictures(x)


def test_rows_that_are_no_pictures():
    with refused("Rows of shape (2, 3) are no pictures of shape (2, 2, 1); give (n, 4) numbers."):
        Pictures.of_rows(np.zeros((2, 3)), (2, 2, 1))
    with refused("Some rows are not finite; only finite numbers make a picture."):
        Pictures.of_rows([[0.0, np.nan]], (1, 2, 1))


def test_what_cannot_be_fitted():
    check_pictures(load_pictures(GREY))
    with refused("array is a single picture; at least two are needed."):
        check_pictures(load_pictures(GREY[:1]))
    with refused("array has 3 pictures that are all the same; give ones that differ."):
        check_pictures(load_pictures(GREY[[1, 1, 1]]))


@pytest.mark.parametrize("source", [GREY, "a.npy", "faces"])
def test_undivided_sources_have_no_test_part(source):
    np.save("a.npy", GREY)
    write_pictures("faces", GREY)
    name = source if isinstance(source, str) else "The array"
    with refused(
        f"{name} is not divided and has no part called 'test'; "
        "give those pictures as a source of their own."
    ):
        load_pictures(source, "test")


def test_which_sources_are_divided():
    write_pictures("faces/cat", GREY)
    write_pictures("halves/test", GREY)
    cifar = write_cifar("cifar")
    Path("digits").mkdir()
    Path("digits/t10k-images-idx3-ubyte").write_bytes(idx(GREY))
    np.savez("whole.npz", x=GREY)
    np.savez("halves.npz", x_train=GREY)
    divided = ["halves", cifar, "digits", "halves.npz"]
    whole = ["faces", cifar / "test_batch.bin", "digits/t10k-images-idx3-ubyte", "whole.npz"]
    both, train, test = ("train", "test"), ("train",), ("test",)
    assert [parts_of(source) for source in divided] == [test, both, test, train]
    assert [parts_of(source) for source in [*whole, "gone.npz"]] == [()] * 5
    # Where none is asked for, that which training has not seen.
    for source, part in ((cifar, "test"), ("halves.npz", "train"), ("whole.npz", "train")):
        np.testing.assert_array_equal(load_part(source, None).x, load_pictures(source, part).x)
    assert load_part(cifar, "train").x.shape != load_part(cifar, None).x.shape


def test_a_part_that_there_is_not():
    with refused("Pictures have no part called 'valid'; choose 'train' or 'test'."):
        load_pictures(GREY, "valid")


# --- files that are refused -----------------------------------------------------------------------


def test_missing_path():
    with refused("gone.npz does not exist; check the path."):
        load_pictures("gone.npz")


@pytest.mark.parametrize(("name", "kind"), [("a.eps", "ends in '.eps'"), ("a", "has no extension")])
def test_unknown_extension(name, kind):
    Path(name).write_text("%!PS")
    with refused(
        f"{name} {kind}; the known ones are .npz, .npy, .bin, .png, .jpg, .jpeg, .bmp, .gif, "
        ".tif, .tiff, .webp, .ppm, .pgm, and MNIST's idx files."
    ):
        load_pictures(name)


@pytest.mark.parametrize("kind", [".npz", ".npy"])
@pytest.mark.parametrize("content", [b"", b"some text", pickle.dumps([1, 2])])
def test_other_content_under_numpys_names(kind, content):
    Path(f"a{kind}").write_bytes(content)
    with refused(f"a{kind} is damaged or not a {kind} file; save or download it again."):
        load_pictures(f"a{kind}")


@pytest.mark.parametrize("kind", [".npz", ".npy"])
def test_truncated_arrays(kind):
    np.savez("a.npz", x=GREY)
    np.save("a.npy", GREY)
    path = Path(f"a{kind}")
    path.write_bytes(path.read_bytes()[:-50])
    with refused(f"a{kind} is damaged or not a {kind} file; save or download it again."):
        load_pictures(path)


class Trap:
    """Writes a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("sprung"),)


@pytest.mark.parametrize("kind", [".npz", ".npy"])
def test_pickled_objects_are_never_loaded(kind):
    objects = np.array([Trap(), Trap()], dtype=object)
    np.savez("a.npz", x=objects)
    np.save("a.npy", objects, allow_pickle=True)
    with refused(
        f"a{kind} holds Python objects, which are not loaded because they can run code; "
        "save it again as an array of numbers."
    ):
        load_pictures(f"a{kind}")
    assert not Path("sprung").exists()
    pickle.loads(pickle.dumps(Trap()))
    assert Path("sprung").exists()  # negative control: the trap works


@pytest.mark.parametrize("given", ["cifar", "cifar/data_batch_1", "cifar/all.pkl"])
def test_the_python_version_of_cifar_is_never_loaded(given):
    Path("cifar").mkdir()
    for name in ("data_batch_1", "batches.meta", "all.pkl"):
        Path("cifar", name).write_bytes(pickle.dumps(Trap()))
    with refused(
        f"{given} is pickled, as CIFAR's Python version is, and not loaded because it can run "
        "code; use the binary version, cifar-10-binary.tar.gz."
    ):
        load_pictures(given)
    assert not Path("sprung").exists()


def test_npz_without_the_part_asked_for():
    np.savez("a.npz", left=GREY, right=GREY)
    np.savez("b.npz", x_test=GREY)
    np.savez("c.npz")
    with refused(
        "a.npz holds the arrays left, right; name the pictures of its train part 'x_train'."
    ):
        load_pictures("a.npz")
    with refused("b.npz holds the arrays x_test; name the pictures of its train part 'x_train'."):
        load_pictures("b.npz")
    with refused("c.npz holds no arrays; name the pictures of its test part 'x_test'."):
        load_pictures("c.npz", "test")


@pytest.mark.parametrize("labels", [np.arange(5), np.eye(6, dtype=int), np.linspace(0, 1, 6)])
def test_npz_with_labels_that_are_none(labels):
    np.savez("a.npz", x=GREY, y=labels)
    with refused(
        f"a.npz, array 'y', has shape {labels.shape} and holds {labels.dtype} values; give one "
        "whole number for each of the 6 pictures, or leave the labels out."
    ):
        load_pictures("a.npz")


def test_npz_with_floats_names_the_array():
    np.savez("a.npz", x=GREY / 2.0)
    with pytest.raises(InputError, match=r"^a\.npz, array 'x', holds float64 values from"):
        load_pictures("a.npz")


def test_an_empty_folder():
    Path("faces").mkdir()
    Path("faces/notes.txt").write_text("no picture")
    with refused(
        "Neither faces nor any folder in it holds picture files; give a folder of files that end "
        "in .png, .jpg, .jpeg, .bmp, .gif, .tif, .tiff, .webp, .ppm, .pgm, or of such folders."
    ):
        load_pictures("faces")


def test_a_folder_of_several_sizes_names_the_first_odd_file():
    write_pictures("faces", [GREY[0], GREY[1], GREY[2][:, :3], GREY[3][:2]])
    with refused(
        "faces/2.png is 3 x 5 and faces/0.png is 4 x 5; crop or resize all pictures to one size."
    ):
        load_pictures("faces")


@pytest.mark.parametrize("content", [b"", b"just text", b"%!PS-Adobe-3.0 EPSF-3.0\n"])
def test_text_under_a_pictures_name(content):
    write_pictures("faces", GREY)
    Path("faces/3.png").write_bytes(content)
    with refused("faces/3.png is damaged or not a picture; save or download it again."):
        load_pictures("faces")


@pytest.mark.parametrize("kind", ["png", "jpg", "bmp"])
def test_a_truncated_picture(kind):
    path = write_pictures("faces", RNG.integers(0, 256, (1, 40, 40), np.uint8), kind) / f"0.{kind}"
    path.write_bytes(path.read_bytes()[:-300])
    with refused(f"faces/0.{kind} is damaged or not a picture; save or download it again."):
        load_pictures(path)


def test_more_bits_than_eight():
    Image.fromarray(GREY[0].astype(np.uint16) * 200).save("a.png")
    with refused("a.png does not have 8 bits a channel (its mode is I;16); save it with 8."):
        load_pictures("a.png")


def test_a_transparent_picture():
    glass = np.dstack([COLOUR[0], GREY[0]])
    Image.fromarray(glass).save("a.png")
    with refused("a.png is transparent in parts; save it on a background."):
        load_pictures("a.png")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_truncated_cifar_batch(change):
    content = records(CIFAR[:2], LABELS[:2])
    Path("a.bin").write_bytes(content[:change] if change < 0 else content + b"0")
    with refused(
        f"a.bin has {2 * 3073 + change} bytes, which is no multiple of CIFAR-10's 3073 a picture; "
        "download it again."
    ):
        load_pictures("a.bin")


def test_other_bytes_than_cifars():
    Path("empty.bin").touch()
    with pytest.raises(InputError, match=r"^empty\.bin has 0 bytes"):
        load_pictures("empty.bin")
    Path("a.bin").write_bytes(bytes([77]) * 3073)
    with refused(
        "a.bin has a picture of class 77 and CIFAR-10 has 10 classes; "
        "give a file of its binary version."
    ):
        load_pictures("a.bin")


def test_cifar_without_one_of_its_batches():
    Path(write_cifar("cifar"), "data_batch_3.bin").unlink()
    assert len(load_pictures("cifar", "test")) == 2
    with refused(
        "cifar lacks data_batch_3.bin of CIFAR's train part; download it again, or give one .bin "
        "file alone."
    ):
        load_pictures("cifar")


def test_idx_of_labels_where_pictures_were_meant():
    Path("train-labels-idx1-ubyte").write_bytes(idx(np.arange(4)))
    with refused(
        "train-labels-idx1-ubyte begins with the number 2049, and an idx file of pictures with "
        "2051; give the file of the pictures."
    ):
        load_pictures("train-labels-idx1-ubyte")


@pytest.mark.parametrize("length", [0, 3, 10, 50])
def test_a_truncated_idx_file(length):
    Path("a-idx3").write_bytes(idx(GREY)[:length])
    with pytest.raises(
        InputError, match=r"^a-idx3 (begins with the number|has \d+ bytes, and its)"
    ):
        load_pictures("a-idx3")


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_gzip(damage):
    packed = bytearray(gzip.compress(idx(GREY)))
    packed[30] ^= 255
    content = packed[:-20] if damage == "cut" else packed
    Path("train-images-idx3-ubyte.gz").write_bytes(content)
    with refused(
        "train-images-idx3-ubyte.gz is damaged or not an idx file; save or download it again."
    ):
        load_pictures(".")


def test_idx_without_the_part_asked_for():
    Path("train-images-idx3-ubyte").write_bytes(idx(GREY))
    with refused(
        ". has no t10k-images-idx3-ubyte file, plain or .gz, which holds the test part; "
        "download it too."
    ):
        load_pictures(".", "test")


def test_a_file_that_may_not_be_read(monkeypatch):
    """Root may read everything, so the system's refusal is made up."""
    np.save("a.npy", GREY)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with refused("a.npy cannot be read (Permission denied); check the path and its permissions."):
        load_pictures("a.npy")


# --- masks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 6, 1), (5, 7, 3)])
def test_halves_complete_each_other(shape):
    lower, upper, left, right = (half_mask(n, shape) for n in ("lower", "upper", "left", "right"))
    for mask in (lower, upper, left, right):
        assert (mask.shape, mask.dtype) == (shape, bool)
    np.testing.assert_array_equal(lower, ~upper)
    np.testing.assert_array_equal(right, ~left)
    assert lower[-1].all()
    assert not lower[0].any()
    assert right[:, -1].all()
    assert not right[:, 0].any()
    assert abs(int(lower.sum()) - int(upper.sum())) <= shape[1] * shape[2]


def test_a_half_that_there_is_not():
    with refused(
        "There is no half of a picture called 'lowr' (did you mean lower?): "
        "choose from lower, upper, left, right."
    ):
        half_mask("lowr", (4, 4, 1))


def test_masks_from_pictures_and_arrays():
    marks = np.zeros((5, 4), np.uint8)
    marks[1, 2], marks[4, 0] = 255, 1
    expected = np.repeat((marks > 0)[..., None], 3, axis=2)
    Image.fromarray(marks).save("grey.png")
    Image.fromarray(np.dstack([marks, 0 * marks, 0 * marks])).save("red.png")
    np.save("flat.npy", marks)
    np.save("deep.npy", marks[..., None] > 0)
    for name in ("grey.png", "red.png", "flat.npy", "deep.npy"):
        np.testing.assert_array_equal(load_mask(name, (5, 4, 3)), expected)
    one_channel = expected * np.array([True, False, False])
    np.save("channels.npy", one_channel)
    np.testing.assert_array_equal(load_mask("channels.npy", (5, 4, 3)), one_channel)


def test_masks_that_are_refused():
    halves = "give lower, upper, left, right, or a mask as a picture or as a .npy file."
    with refused(f"uper is no file (did you mean upper?); {halves}"):
        load_mask("uper", (5, 4, 1))
    with refused(f"gone.png is no file; {halves}"):
        load_mask("gone.png", (5, 4, 1))
    Path("a.txt").write_text("0 1")
    with refused("a.txt is neither a picture nor a .npy file; save the mask as .png."):
        load_mask("a.txt", (5, 4, 1))
    Image.fromarray(GREY[0]).save("a.jpg")
    with refused("a.jpg is a JPEG, which blurs a mask; save it as .png."):
        load_mask("a.jpg", (5, 4, 1))
    Image.fromarray(GREY[0]).save("a.png")
    with refused("a.png has shape (5, 4, 1) and the pictures (4, 5, 1); give one of their size."):
        load_mask("a.png", (4, 5, 1))
    np.save("a.npy", np.zeros((5, 4)))
    with refused("a.npy holds float64 values; give the mask as booleans."):
        load_mask("a.npy", (5, 4, 1))
    np.save("b.npy", np.zeros((5, 4), bool))
    with refused("b.npy marks nothing to complete; mark it by what is not zero."):
        load_mask("b.npy", (5, 4, 1))
