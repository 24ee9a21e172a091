"""Grids, strips and animations hold every pixel at its place, and are written whole."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from fenchel.errors import InputError
from fenchel.report import energies_figure, grid, save_animation, save_energies, save_picture, strip

RNG = np.random.default_rng(0)


def random_pictures(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("count", "columns", "gap"), [(6, 3, 2), (7, 3, 1), (4, None, 0), (1, 1, 5)]
)
def test_every_picture_is_at_its_place_and_the_rest_is_white(channels, count, columns, gap):
    pictures = random_pictures(count, 5, 4, channels)
    whole = grid(pictures, columns, gap)
    across = columns or 2
    down = -(-count // across)
    assert whole.shape == (down * (5 + gap) - gap, across * (4 + gap) - gap, channels)
    seen = np.zeros(whole.shape, bool)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, across)
        rows = slice(row * (5 + gap), row * (5 + gap) + 5)
        cols = slice(column * (4 + gap), column * (4 + gap) + 4)
        np.testing.assert_array_equal(whole[rows, cols], picture)
        seen[rows, cols] = True
    assert (whole[~seen] == 255).all()


def test_a_grid_is_about_square():
    assert grid(random_pictures(64, 2, 2, 1), gap=0).shape == (16, 16, 1)
    assert grid(random_pictures(10, 2, 2, 1), gap=0).shape == (6, 8, 1)


def test_a_strip_has_a_row_a_picture_and_a_column_a_step():
    frames = random_pictures(3, 2, 5, 4, 3)
    whole = strip(frames, gap=1)
    assert whole.shape == (2 * 6 - 1, 3 * 5 - 1, 3)
    for step in range(3):
        for picture in range(2):
            part = whole[6 * picture : 6 * picture + 5, 5 * step : 5 * step + 4]
            np.testing.assert_array_equal(part, frames[step, picture])


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB")])
def test_a_picture_is_written_exactly_and_enlarged_by_squares(channels, mode, tmp_path):
    picture = random_pictures(5, 4, channels)
    save_picture(picture, tmp_path / "a.png", zoom=3)
    with Image.open(tmp_path / "a.png") as image:
        pixels = np.asarray(image).reshape(15, 12, channels)
        assert image.mode == mode
    np.testing.assert_array_equal(pixels, np.kron(picture, np.ones((3, 3, 1), np.uint8)))
    assert names(tmp_path) == ["a.png"]


def frames_of(path, mode):
    with Image.open(path) as image:
        return np.stack([np.asarray(f.convert(mode)) for f in ImageSequence.Iterator(image)])


@pytest.mark.parametrize("kind", ["png", "gif"])
def test_an_animation_of_grey_pictures_is_exact(kind, tmp_path):
    frames = random_pictures(4, 9, 6, 5, 1)
    save_animation(frames, tmp_path / f"a.{kind}", columns=3)
    expected = np.stack([grid(frame, 3) for frame in frames])[..., 0]
    np.testing.assert_array_equal(frames_of(tmp_path / f"a.{kind}", "L"), expected)


def test_an_animation_in_colour(tmp_path):
    """A PNG is exact; the GIF's nearest colours are near, and the same in all frames."""
    smooth = np.linspace(0, 255, 4 * 4 * 8 * 8 * 3).reshape(4, 4, 8, 8, 3).astype(np.uint8)
    smooth[1:, 0] = smooth[0, 0]  # stands still
    expected = np.stack([grid(frame) for frame in smooth])
    for kind in ("png", "gif"):
        save_animation(smooth, tmp_path / f"a.{kind}")
    np.testing.assert_array_equal(frames_of(tmp_path / "a.png", "RGB"), expected)
    drawn = frames_of(tmp_path / "a.gif", "RGB")
    assert np.abs(drawn.astype(int) - expected).max() < 8
    assert (drawn[:, :8, :8] == drawn[0, :8, :8]).all()


def test_a_gif_runs_on_and_rests_at_its_end(tmp_path):
    save_animation(random_pictures(3, 4, 6, 5, 1), tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as image:
        assert image.info["loop"] == 0
        shown = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
    assert shown == [100, 100, 1500]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_gif_of_noise_stays_below_a_megabyte(channels, tmp_path):
    """64 pictures of 28 x 28 in 20 frames: noise, which nothing compresses, is the worst case."""
    save_animation(random_pictures(20, 64, 28, 28, channels), tmp_path / "a.gif")
    assert (tmp_path / "a.gif").stat().st_size <= 1_000_000
    assert len(frames_of(tmp_path / "a.gif", "L")) == 20


def test_what_was_there_stays_when_writing_fails(tmp_path):
    path = tmp_path / "a.png"
    save_picture(random_pictures(5, 4, 1), path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_picture(random_pictures(5, 4, 7), path)  # of seven channels there is no PNG
    assert path.read_bytes() == before
    assert names(tmp_path) == ["a.png"]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda _: grid(np.zeros((2, 5, 4, 1))), r"float64\[2, 5, 4, 1\]; give at least one"),
        (lambda _: grid(random_pictures(5, 4)), r"uint8\[5, 4\]"),
        (lambda _: grid(random_pictures(0, 5, 4, 1)), r"uint8\[0, 5, 4, 1\]"),
        (lambda f: save_animation(random_pictures(0, 2, 5, 4, 1), f / "a.gif"), "no frames"),
        (lambda f: save_animation(random_pictures(1, 2, 5, 4, 1), f / "a.mp4"), "end it in .gif"),
        (lambda f: save_picture(random_pictures(5, 4, 1), f / "no" / "a.png"), "does not exist"),
        (lambda f: save_picture(random_pictures(5, 4, 1), f), "is a folder"),
        (lambda _: energies_figure({}), "0 series"),
        (lambda _: energies_figure({"real": [np.nan]}), "'real' have no finite value"),
    ],
)
def test_refuses_what_cannot_be_shown(use, message, tmp_path):
    with pytest.raises(InputError, match=message):
        use(tmp_path)
    assert names(tmp_path) == []


def test_energies_are_histograms_with_an_area_of_one():
    rng = np.random.default_rng(1)
    series = {
        "real": rng.normal(size=2_000),
        "held-out": rng.normal(size=500),
        "generated": rng.normal(size=100) + 50.0,
    }
    axes = energies_figure(series).axes[0]
    assert "f(x), up to a constant" in axes.get_xlabel()
    assert len(axes.patches) == 3
    for patch, values in zip(axes.patches, series.values(), strict=True):
        heights, edges, _ = patch.get_data()
        # The frame holds the bulk of each series, however few and far away they are.
        inside = np.mean((values >= edges[0]) & (values <= edges[-1]))
        assert inside > 0.98
        np.testing.assert_allclose((heights * np.diff(edges)).sum(), inside)


def test_energies_say_what_was_left_out(tmp_path):
    values = np.array([0.0, 1.0, 2.0, np.nan, np.inf])
    figure = energies_figure({"real": np.arange(30.0), "generated": values})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[1] == "generated, 2 not finite  (n = 3)"
    save_energies({"real": np.arange(30.0), "generated": values}, tmp_path / "a.png")
    assert names(tmp_path) == ["a.png"]
    with Image.open(tmp_path / "a.png") as image:
        assert np.asarray(image.convert("L")).std() > 5
