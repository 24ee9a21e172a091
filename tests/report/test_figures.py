"""The figures hold what they promise, and one wild point does not spoil them."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.image import imread

from fenchel.errors import InputError
from fenchel.report import density_figure, moments_figure, samples_figure, save, training_figure


def normal_points(d, n=300, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def normal_log_density(x):
    return -0.5 * (x**2).sum(axis=1) - 0.5 * x.shape[1] * np.log(2.0 * np.pi)


def run_metrics(iterations=40):
    return [
        {
            "iteration": 10 * index,
            "log_partition_lower": 1.0 - 1.0 / (1 + index),
            "log_partition": 1.0,
            "log_likelihood": -2.0,
            "ess": 0.8,
            "potential_grad_norm": 0.5,
            "sampler_grad_norm": 2.0,
            "skipped": int(index in (3, 20)),
        }
        for index in range(iterations)
    ]


def assert_draws_whole(figure, path):
    """The PNG is no blank, is as large as it should be, and nothing sticks out of its frame."""
    save(figure, path)
    pixels = imread(path)
    # Cropped to what is drawn, and so never much larger than the figure was laid out.
    width, height = np.round(150 * figure.get_size_inches())
    assert (np.array(pixels.shape[:2]) <= np.array([height, width]) + 50).all()
    assert (np.array(pixels.shape[:2]) > 100).all()
    assert pixels[..., :3].std() > 0.02
    drawn = figure.get_tightbbox()
    assert (drawn.min > -0.01).all()
    assert (drawn.max < figure.get_size_inches() + 0.01).all()


@pytest.mark.parametrize(("d", "panels"), [(1, 1), (2, 2), (5, 15)])
def test_samples_have_their_panels(d, panels, tmp_path):
    figure = samples_figure(normal_points(d), normal_points(d, seed=1), title="Normal")
    assert len(figure.axes) == panels
    assert figure.get_suptitle() == "Normal"
    assert_draws_whole(figure, tmp_path / "samples.png")


def test_a_corner_holds_the_first_five_columns():
    assert len(samples_figure(normal_points(7), normal_points(7), title="Wide").axes) == 15


@pytest.mark.parametrize("stretch", [0.05, 1.0, 50.0])
def test_two_panels_share_their_limits_and_are_whole(stretch, tmp_path):
    data = normal_points(2) * np.array([1.0, stretch])
    figure = samples_figure(data, 3.0 * data, title="Normal")
    assert_draws_whole(figure, tmp_path / "samples.png")
    left, right = figure.axes
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()
    assert left.get_aspect() == right.get_aspect() == 1.0


def test_points_outside_the_frame_are_counted():
    figure = samples_figure(normal_points(2), normal_points(2) + 100.0, title="Lost")
    assert "100.0% outside" in figure.axes[1].get_title(loc="left")


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("n", [10, 300])
def test_an_outlier_leaves_the_limits_at_the_bulk(d, n):
    data = normal_points(d, n)
    data[0] = 1e6
    figures = [
        samples_figure(data, normal_points(d, seed=1), title="Outlier"),
        density_figure(normal_log_density, data, title="Outlier"),
    ]
    for axes in figures[0].axes + figures[1].axes[: 1 if d < 3 else 0]:
        assert np.abs(axes.get_xlim()).max() < 6.0
        assert np.abs(axes.get_ylim()).max() < 6.0


@pytest.mark.parametrize(("d", "panels"), [(1, 1), (2, 2), (5, 1)])
def test_density_has_its_panels(d, panels, tmp_path):
    data, samples = normal_points(d), normal_points(d, seed=1)
    figure = density_figure(normal_log_density, data, samples=samples, title="Normal")
    assert len(figure.axes) == panels
    assert_draws_whole(figure, tmp_path / "density.png")


def test_density_curve_is_the_density():
    figure = density_figure(normal_log_density, normal_points(1), title="Normal")
    x, y = figure.axes[0].lines[0].get_data()
    np.testing.assert_allclose(y, np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi))


def test_density_map_has_the_density_at_its_place():
    def tilted(x):
        return x @ np.array([0.1, 1.0])

    figure = density_figure(tilted, normal_points(2), title="Tilted")
    heat = figure.axes[0].collections[0].get_array()
    assert np.unravel_index(heat.argmax(), heat.shape) == (heat.shape[0] - 1, heat.shape[1] - 1)
    assert heat[-1, 0] > heat[0, -1]


def test_training_has_three_panels_with_marks(tmp_path):
    figure = training_figure(run_metrics())
    assert [len(axes.lines) for axes in figure.axes] == [3, 1, 2]
    assert figure.axes[2].get_yscale() == "log"
    for axes in figure.axes:
        marked = [segment[0, 0] for segment in axes.collections[0].get_segments()]
        assert marked == [30.0, 200.0]
    assert_draws_whole(figure, tmp_path / "training.png")


def test_training_leaves_out_what_was_not_recorded(tmp_path):
    rows = [{"ess": 0.5}, {"ess": float("nan"), "log_likelihood": -1.0}, {"ess": 0.7}]
    figure = training_figure(rows)
    assert [axes.lines[0].get_xdata().tolist() for axes in figure.axes] == [[1], [0, 2]]
    assert_draws_whole(figure, tmp_path / "training.png")


def test_figures_survive_a_diverged_sampler(tmp_path):
    samples = normal_points(2)
    samples[::2] = np.nan
    assert_draws_whole(
        samples_figure(normal_points(2), samples, title="Diverged"), tmp_path / "samples.png"
    )


def test_the_users_settings_stay_as_they_were():
    before = dict(mpl.rcParams)
    samples_figure(normal_points(2), normal_points(2), title="Normal")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: training_figure([]), "no metrics"),
        (lambda: samples_figure(normal_points(2), normal_points(3), title=""), "same columns"),
        (lambda: samples_figure(np.zeros((2, 2, 2)), normal_points(2), title=""), "shape"),
        (lambda: samples_figure(normal_points(2), np.full((3, 2), np.inf), title=""), "no finite"),
        (
            lambda: density_figure(normal_log_density, normal_points(2), names=["a"], title=""),
            "1 names for 2 columns",
        ),
    ],
)
def test_refuses_what_cannot_be_drawn(draw, message):
    with pytest.raises(InputError, match=message):
        draw()


def test_moments_of_discrete_data_lie_on_the_line_where_they_agree():
    rng = np.random.default_rng(0)
    data = (rng.uniform(size=(500, 4)) < [0.2, 0.4, 0.6, 0.8]).astype(float)
    figure = moments_figure(data, data.copy(), title="spins")
    means, covariances = figure.axes
    shown = means.containers[0].lines[0]
    np.testing.assert_allclose(shown.get_xdata(), data.mean(axis=0))
    np.testing.assert_allclose(shown.get_ydata(), shown.get_xdata())
    pairs = covariances.containers[0].lines[0]
    expected = np.cov(data, rowvar=False, bias=True)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(pairs.get_xdata(), expected, atol=1e-12)
