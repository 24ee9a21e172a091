"""The page as text: what is escaped, what the commands say, what is marked and told."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

from fenchel.config import Config
from fenchel.report.lines import Evaluation, Line
from fenchel.report.page import html_report
from fenchel.report.page.axes import Axes, Scale
from fenchel.report.page.clouds import clouds_section
from fenchel.report.page.commands import commands, commands_section
from fenchel.report.page.draws import Draws
from fenchel.report.page.markup import Markup, json_for_script, tag
from fenchel.report.page.training import training_section
from fenchel.report.page.trajectories import trace, trajectories
from fenchel.report.page.verdicts import badge, verdicts_section

EVIL = "</script><img src=x onerror=alert(1)>"


def test_what_is_not_markup_is_escaped():
    assert tag("p", EVIL) == "<p>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;</p>"
    assert tag("p", title='" onclick="x') == '<p title="&quot; onclick=&quot;x"></p>'
    assert tag("p", Markup("<b>bold</b>"), None, False, 0) == "<p><b>bold</b>0</p>"
    assert tag("input", class_="a", aria_label="b", disabled=True, hidden=False) == (
        '<input class="a" aria-label="b" disabled>'
    )


def test_json_stays_within_its_script():
    value = {"name": EVIL, "other": "<!--&amp;"}
    text = json_for_script(value)
    assert not set("<>&") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_for_script([float("nan")])


def test_places_run_upwards_and_logarithms_are_even():
    axes = Axes(Scale(0, 10), Scale(1, 100, log=True), "x", "y", 200, 100)
    x, y = axes.place(np.array([0, 5, 10]), np.array([1, 10, 100]))
    np.testing.assert_allclose(x, [0, 100, 200])
    np.testing.assert_allclose(y, [100, 50, 0], atol=1e-12)


def test_a_verdict_is_a_word_and_not_only_a_colour():
    assert "good" in re.sub(r"<[^>]*>", "", badge("good"))
    lines = [Line("ESS", "3%", "bad", "Too few."), Line("norm", "1", "", "")]
    text = verdicts_section(Evaluation(Line("", "", "bad", ""), lines, {}))
    assert re.findall(r'class="badge (\w+)"', text) == ["bad", "none"]
    assert text.count('scope="col"') == 4
    assert text.count('scope="row"') == 2


def rows(events=()):
    return [
        {"iteration": 10 * i, "loss": 3.0 / i, "ess": 0.5, "events": events if i == 2 else []}
        for i in range(1, 4)
    ]


def test_events_are_marked_and_told():
    event = {"who": "sampler", "iteration": 20, "dropped": 2, "learning_rate": 0.5}
    text = training_section(rows([event]))
    assert text.count('class="event"') == 2  # in each of the two panels
    assert text.count("2 non-finite step(s) of the sampler dropped") == 3
    assert "Nothing had to be mended" in training_section(rows())
    assert "no curves" in training_section([])


def test_the_commands_make_the_same_run(tmp_path):
    plain = Config().with_values(training__steps=300, seed=2, dynamics__kind="none").to_dict()
    first, second = commands(plain, "my data.csv").splitlines()
    assert shlex.split(first) == [
        *("fenchel", "fit", "my data.csv", "--dynamics", "none", "--steps", "300", "--seed", "2"),
        *("--out", "again"),
    ]
    assert shlex.split(second) == ["fenchel", "report", "again", "my data.csv"]


def test_settings_without_a_flag_go_through_a_file(tmp_path):
    config = Config().with_values(
        training__steps=5, training__batch=64, potential__base_scale=2.0, dynamics__clip_value=1.0
    )
    text = commands(config.to_dict(), "moons")
    file = tmp_path / "settings.json"
    file.write_text(text.split("<<'END'\n")[1].split("\nEND\n")[0])
    assert Config.from_file(file) == config
    assert text.splitlines()[-2] == "fenchel fit moons --config settings.json --out again"


def test_a_run_with_objects_of_ones_own_says_so():
    custom = Config()
    custom = replace(custom, potential=replace(custom.potential, kind="custom"))
    text = commands_section({"config": custom.to_dict()}, "moons")
    assert "objects of your own" in text
    assert "<pre" not in text


def drawn(x):
    """As if the model had drawn the data's own points."""
    return Draws(x, x, None, None)


def test_a_line_has_a_curve_and_without_dynamics_nothing_moves(untrained, few_draws, few_dots):
    x = np.random.default_rng(0).normal(size=(200, 1))
    fit, _ = untrained(x, (EVIL,), dynamics__kind="none")
    text = clouds_section(fit, drawn(x), None)
    assert 'class="line model"' in text
    assert "<img" not in text
    still = trajectories(fit, drawn(x), None)
    assert "There is nothing to animate: this sampler has no dynamics" in still.section
    assert still.numbers is None


def test_discrete_data_have_moments(untrained, few_draws, few_dots):
    x = np.random.default_rng(0).choice([0.0, 1.0], size=(200, 3))
    fit, samples = untrained(x, ("a", "b", "c"), potential__kind="ising", method="pcd")
    record = {"data": {}, "config": fit.config.to_dict()}
    text = html_report(fit, samples, record, [], Evaluation(Line("", "", "", ""), [], {}))
    assert "Covariance of each pair" in text
    assert "There is nothing to animate: discrete points" in text
    assert "<canvas" not in text


def test_many_columns_have_a_corner(untrained):
    x = np.random.default_rng(0).normal(size=(200, 6))
    fit, _ = untrained(x, ("a", "b", EVIL, "d", "e", "f"), method="score-matching")
    text = clouds_section(fit, drawn(x), None)
    assert "the first 5 of 6 columns" in text
    assert text.count('class="dots small samples"') == 10
    assert "<img" not in text


def test_chains_that_tune_themselves_begin_at_the_data(untrained, few_draws):
    x = np.random.default_rng(0).normal(size=(50, 2))
    fit, _ = untrained(x, ("a", "b"), method="score-matching")
    frames = trace(fit, 8, seed=0)
    assert frames.shape == (3, 8, 2)  # two trajectories, as few draws have
    starts = {tuple(row) for row in np.round(x, 4)}
    assert all(tuple(row) in starts for row in np.round(frames[0], 4))
    assert not np.array_equal(frames[0], frames[-1])
