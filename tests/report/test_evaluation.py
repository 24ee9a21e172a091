"""The evaluation of fits whose faults are known: a right one, and others wrong in one way each."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import Normal

from fenchel.config import Config
from fenchel.data import Samples, Standardiser, Toy
from fenchel.dynamics import AbstractDynamics, CentredNormal, Chain
from fenchel.errors import InputError
from fenchel.evidence import Annealing, Tempering
from fenchel.potentials import DiagonalGaussian, SelfNormalised
from fenchel.report.evaluation import _distances, _likelihood, evaluate
from fenchel.report.findings import Findings, silent
from fenchel.result import Fit
from fenchel.samplers import Embedding
from fenchel.starts import Empirical, Flow

COLUMNS = ("a", "b")
MEAN, SCALE = np.array([5.0, -2.0]), np.array([0.1, 10.0])
TRUTH = np.log(2 * np.pi) + np.log(SCALE).sum()  # log Z of a standard normal in these units
CALM = [
    {"iteration": 100 * (i + 1), "lag": 0.01, "ess": 0.9, "loss": 0.0, "log_likelihood": 0.0}
    for i in range(30)
]


def model(spread: float = 1.0, start=None) -> Fit:
    """N(0, spread²) in standard units, from a start somewhat wider than the data."""
    f = DiagonalGaussian(jnp.zeros(2), jnp.full(2, -2 * np.log(spread)))
    start = start or Flow(Normal(jnp.zeros(2), jnp.full(2, 1.3)), CentredNormal(0))
    sampler = Embedding(start, Chain())
    points = jnp.asarray(np.random.default_rng(1).standard_normal((200, 2)), jnp.float32)
    scaling = Standardiser(MEAN, SCALE)
    return Fit(f, sampler, None, points, scaling, Config(), COLUMNS, "table")


def drawn(n: int, seed: int) -> Samples:
    x = np.random.default_rng(seed).standard_normal((n, 2))
    return Samples(MEAN + SCALE * x, "table", None, COLUMNS)


@pytest.fixture(scope="module", autouse=True)
def few():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fenchel.drawing.CHUNK", 512)
        patch.setattr("fenchel.evidence.integral.NODES", {2: 101})
        patch.setattr("fenchel.report.evaluation.MOST_POINTS", 500)
        patch.setattr("fenchel.report.evaluation.CHAIN_DRAWS", 200)
        patch.setattr("fenchel.report.evaluation.SHORT", Annealing(64, 10, 2))
        yield


@pytest.fixture(scope="module")
def right():
    return evaluate(model(), drawn(2_000, 0), CALM * 1)


@pytest.fixture(scope="module")
def narrow():
    """f half as wide as the data."""
    return evaluate(model(0.5), drawn(2_000, 0), CALM)


def verdicts(found):
    return {line.name: line.verdict for line in found.lines}


def test_a_right_fit_has_no_fault(right):
    # Three p-values at 1%: a false caution once in 30 seeds, and this one is fixed.
    assert "bad" not in verdicts(right).values()
    assert right.values["log_partition_weights_estimate"] == pytest.approx(TRUTH, abs=0.05)
    assert right.values["log_partition_quadrature_estimate"] == pytest.approx(TRUTH, abs=1e-3)
    assert right.values["log_likelihood_estimate"] == pytest.approx(-1 - TRUTH, abs=0.1)
    assert right.values["nuts_r_hat"] < 1.1
    assert right.verdict.meaning.endswith(".")


def test_a_narrow_model_is_found_out(narrow):
    found = verdicts(narrow)
    assert found["kernel Stein test of f against data"] == "bad"
    assert found["MMD, samples against data"] == "bad"
    assert found["nearest neighbours"] != "good"
    assert narrow.verdict.verdict == "bad"
    assert "Not a good fit" in narrow.verdict.meaning
    # log Z itself is known as well as ever.
    assert found["log Z by integration"] == "good"


def test_everything_can_be_written_as_json(right):
    text = json.dumps(right.values, allow_nan=False)
    assert json.loads(text) == right.values


def test_every_line_says_what_it_means(right, narrow):
    for line in (*right.lines, *narrow.lines):
        assert line.verdict in ("good", "caution", "bad", "")
        assert line.meaning.endswith((".", "?"))
        assert "nan" not in line.value.lower()


def test_a_run_that_diverged_is_bad_whatever_the_rest():
    lost = [{**row, "lag": 80.0 if row["iteration"] > 1_000 else 0.1} for row in CALM]
    found = evaluate(model(), drawn(500, 0), lost)
    assert found.verdict.verdict == "bad"
    assert found.verdict.value == "diverging since step 1,100"


def test_all_accounts_of_log_z_agree():
    fit = model()
    assert fit.accounts == ("weights", "annealing", "quadrature")
    ways = ("weights", "quadrature", Annealing(64, 10, 2), Tempering(32, 32, 5, 2, 1))
    for by in ways:
        z = fit.log_partition(by)
        # The bounds are 99%; the quadrature's are its error, which 32-bit sums exceed a little.
        assert z.lower - 1e-4 < TRUTH < z.upper + 1e-4
        assert z.estimate == pytest.approx(TRUTH, abs=5 * z.standard_error + 1e-4)
    assert fit.log_partition() is fit.log_partition("weights")


def two_modes(x):
    """N(±4, 0.4²) in both columns; log Z is 0."""
    logs = [-0.5 * jnp.sum(((x - centre) / 0.4) ** 2) for centre in (-4.0, 4.0)]
    return jnp.logaddexp(*logs) - jnp.log(2 * 2 * jnp.pi * 0.4**2)


def test_a_mode_that_the_sampler_lost_is_seen_from_the_data():
    start = Flow(Normal(jnp.full(2, 4.0), jnp.full(2, 0.5)), CentredNormal(0))
    fit = replace(
        model(start=start), f=two_modes, standardiser=Standardiser(np.zeros(2), np.ones(2))
    )
    modes = np.repeat([[-4.0, -4.0], [4.0, 4.0]], 100, axis=0)
    annealing = Annealing(64, 20, 2)
    # Negative control: what begins at the sampler is content with half of the mass.
    for z in (fit.log_partition(), fit.log_partition(annealing)):
        assert z.upper < -0.3
        assert z.caution == ""
    z = fit.log_partition(annealing, modes)
    assert z.lower < 0 < z.upper
    assert "lacks a mode" in z.caution


def test_points_are_for_annealing_only():
    with pytest.raises(InputError, match="only annealing"):
        model().log_partition("weights", np.zeros((3, 2)))


def test_a_learnt_constant_is_a_belief():
    dim = 5
    f = SelfNormalised(DiagonalGaussian(jnp.zeros(dim), jnp.zeros(dim)), 0.3)
    start = Flow(Normal(jnp.zeros(dim), jnp.full(dim, 1.1)), CentredNormal(0))
    rows = np.random.default_rng(0).standard_normal((600, dim))
    points, names = jnp.zeros((1, dim)), tuple("abcde")
    fit = replace(model(start=start), f=f, points=points, columns=names)
    fit = replace(fit, standardiser=Standardiser(np.zeros(dim), np.ones(dim)))
    assert fit.accounts == ("weights", "annealing", "learnt")
    found = evaluate(fit, Samples(rows, "table", None, names), CALM)
    assert "log Z, accounts compared" not in verdicts(found)
    assert verdicts(found)["log Z as noise contrast learnt it"] == "caution"
    with pytest.raises(InputError, match="noise contrast"):
        model().log_partition("learnt")


def test_many_dimensions_are_no_fault():
    """The truth's own precision is 0.7 in 64 dimensions; that of a sampler half as wide is 1, and
    its recall near 0."""
    rng, found = np.random.default_rng(0), {}
    data = rng.standard_normal((2_000, 64))
    for name, spread in {"right": 1.0, "narrow": 0.5}.items():
        each = Findings(silent)
        _distances(each, spread * rng.standard_normal((1_000, 64)), data, 0)
        found[name] = verdicts(each.evaluation("these data"))["nearest neighbours"]
    assert found == {"right": "good", "narrow": "bad"}


def test_draws_that_ran_off_are_a_fault_and_no_end(monkeypatch):
    def broken(self, n, seed=0, corrected=None):
        x = MEAN + SCALE * np.random.default_rng(seed).standard_normal((n, 2))
        x[::5] = np.nan
        return x

    monkeypatch.setattr(Fit, "sample", broken)
    found = evaluate(model(), drawn(2_000, 0), CALM)
    assert verdicts(found)["samples that are lost"] == "bad"
    assert found.values["lost_samples"] == found.values["lost_raw_samples"] == pytest.approx(0.2)
    assert found.values["mmd_samples_aggregated_p"] > 0.001  # the rest is judged all the same
    json.dumps(found.values, allow_nan=False)


class Astray(AbstractDynamics):
    """After which such a share of the particles is not a number."""

    share: float = eqx.field(static=True)

    @property
    def exact(self):
        return True

    def __call__(self, f, particle, key):
        lost = jax.random.uniform(key) < self.share
        return particle.moved(f, jnp.where(lost, jnp.nan, particle.x), jnp.zeros(()))


def test_chains_begin_where_numbers_are():
    """An inexact sampler of which a fifth runs off, and one of which all does."""
    rows = drawn(500, 0)
    for share, is_known in ((0.2, True), (1.0, False)):
        start = Empirical(CentredNormal(0))
        fit = replace(model(start=start), sampler=Embedding(start, Astray(share)))
        found = verdicts(evaluate(fit, rows, CALM))
        assert found["samples that are lost"] == "bad"
        assert (found["log Z by annealing"] != "bad") == is_known


def test_few_rows_are_judged_too():
    far = Samples(MEAN + SCALE * (50 + drawn(60, 0).x), "table", None, COLUMNS)
    found = verdicts(evaluate(model(), far, CALM))
    assert found["MMD, samples against data"] == "bad"
    evaluate(model(), drawn(9, 0), CALM)  # too few for some lines, and no error


def test_a_likelihood_above_the_truths_is_a_fault(monkeypatch):
    """It can only be that of a log Z that is too low."""
    fit, toy = (
        model(),
        Toy("standard", "", drawn, lambda x: -0.5 * ((x - MEAN) / SCALE) ** 2 @ [1, 1] - TRUTH),
    )
    samples = replace(drawn(1_000, 3), toy=toy)
    verdicts = {}
    for shift in (0.0, 0.05, 3.0):
        z = fit.log_partition("quadrature").moved(-shift)
        z = z._replace(caution="few draws" if shift else "")
        monkeypatch.setattr(Fit, "log_partition", lambda *_, z=z: z)
        found = Findings(silent)
        _likelihood(found, fit, samples, "these data")
        monkeypatch.undo()
        (line,) = found.lines
        verdicts[shift] = line.verdict
        assert ("few draws" in line.meaning) == bool(shift)
        assert (f"{shift:.4f} less" in line.meaning) or not shift
    assert verdicts == {0.0: "good", 0.05: "caution", 3.0: "bad"}


def test_a_likelihood_says_how_much_is_known_of_it():
    fit = model()
    assert fit.log_likelihood(MEAN[None]).standard_error == np.inf  # of one row
    far = replace(fit, f=lambda x: jnp.where(x[0] > 50, -jnp.inf, fit.f(x)))
    score = far.log_likelihood(MEAN + SCALE * np.array([[0.0, 0.0], [60.0, 0.0]]))
    assert score.caution.startswith("f is not finite at 1 of 2 rows")


def test_what_cannot_be_tested_is_a_line_of_its_own():
    """And the rest is judged all the same."""
    fit = model()
    kinked = replace(fit, f=lambda x: fit.f(x) + 0 * jnp.sqrt(jnp.maximum(x[0] - 1, 0)))
    found = evaluate(kinked, drawn(200, 0), CALM)
    lines = {line.name: line for line in found.lines}
    stein = lines["kernel Stein test of f against data"]
    assert (stein.value, stein.verdict) == ("not known", "bad")
    assert "nearest neighbours" in lines
    assert "energy overlap" in lines
    assert json.dumps(found.values)


def test_data_beyond_all_numbers_are_refused():
    samples = drawn(200, 0)
    far = replace(samples, x=np.where(np.arange(400).reshape(200, 2) < 4, 1e60, samples.x))
    with pytest.raises(InputError, match=r"The data reach 1e\+61 standard deviations"):
        evaluate(model(), far, CALM)


def test_log_z_by_something_else_is_refused():
    with pytest.raises(InputError, match="log Z was asked for by 3: give its account's name"):
        model().log_partition(3)
    for values, name in (({"moves": 0}, "moves=0"), ({"leapfrogs": 0}, "leapfrogs=0")):
        with pytest.raises(InputError, match=rf"Tempering with {name}: give a whole number"):
            Tempering(**values)
    with pytest.raises(InputError, match=r"Annealing with chains=100.5: give a whole number"):
        Annealing(chains=100.5)


def test_likelihood_lies_between_what_log_z_allows():
    fit, rows = model(), drawn(1_000, 3).x
    score = fit.log_likelihood(rows)
    assert score.lower < score.estimate < score.upper
    assert score.estimate == pytest.approx(fit.log_density(rows).mean())
    exact = fit.log_likelihood(rows, "quadrature")
    assert score.lower < exact.estimate < score.upper
    assert score.rows == 1_000


def test_without_a_density_there_are_no_weights():
    fit = model(start=Empirical(CentredNormal(2)))
    assert fit.accounts == ("annealing", "quadrature")
    assert fit.log_partition().how == "quadrature"
    with pytest.raises(InputError, match="exact density"):
        fit.log_partition("weights")
    with pytest.raises(InputError, match="did you mean annealing"):
        fit.log_partition("anealing")


def test_reference_chains_are_in_the_datas_units():
    chains = model().reference(200)  # as many as an evaluation asks for
    assert chains.x.shape == (4, 200, 2)
    # Five standard errors of 800 dependent draws, taken to be worth 100.
    assert chains.flat.mean(axis=0) == pytest.approx(MEAN, abs=0.5 * SCALE.max())
    assert chains.flat.std(axis=0) == pytest.approx(SCALE, rel=0.4)
    assert chains.names == COLUMNS
