"""Every dynamics and every start: the density carried along is that of the Jacobian, in 64-bit.

Dynamics see of a start only its point, its momentum and its density: each is tried on one start,
and each start with dynamics of every size of momentum, one of them a stack.

One table of embeddings, and a reference that each is compared with: the formulas of the paper's
section 3.2 in NumPy, without a log-determinant anywhere, with the momenta as explicit inputs. The
Jacobian of the whole path comes from complex steps, which are exact to rounding for functions that
are analytic along the path, as these are.
"""

from functools import lru_cache
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import stats

from fenchel.build import build_dynamics, build_start
from fenchel.config import StartConfig
from fenchel.dynamics import (
    Box,
    CentredNormal,
    Chain,
    ClipNorm,
    ClipValue,
    Leapfrog,
    Options,
    Particle,
    PerStep,
    Refresh,
    Repeat,
)
from fenchel.parameters import split
from fenchel.samplers import Embedding
from fenchel.starts import Empirical

pytestmark = pytest.mark.usefixtures("x64")

FLOWS = ["planar", "coupling", "spline"]

# name: recipe, options
DYNAMICS = {
    "none": ("none", {}),
    "hmc": ("hmc", {"clip_norm": None}),
    "hmc, 3 leapfrogs": ("hmc", {"leapfrogs": 3}),
    "hmc, shared": ("hmc", {"steps": 3, "per_step": False, "per_dimension": False}),
    "hmc, norm clipped": ("hmc", {"clip_norm": 0.5}),
    "hmc, value clipped": ("hmc", {"clip_norm": None, "clip_value": 0.3}),
    "hmc, precisions": ("hmc", {"steps": 3, "precision": (0.5, 1.0, 3.0)}),
    "langevin": ("langevin", {"precision": (2.0, 0.5)}),
    "langevin, shared": ("langevin", {"per_step": False}),
    "generalized-hmc": ("generalized-hmc", {}),
    "generalized-hmc, latent 1": ("generalized-hmc", {"latent": 1, "precision": (2.0, 0.5)}),
    "generalized-hmc, latent 3": ("generalized-hmc", {"latent": 3, "leapfrogs": 2}),
    "generalized-hmc, shared": ("generalized-hmc", {"latent": 3, "per_step": False}),
    "generalized-langevin": ("generalized-langevin", {"per_dimension": False}),
    "generalized-langevin, latent 1": ("generalized-langevin", {"latent": 1}),
    "generalized-langevin, latent 3": ("generalized-langevin", {"latent": 3, "clip_norm": 0.5}),
    "hmc+generalized-langevin": (
        "hmc+generalized-langevin",
        {"latent": 3, "precision": (2.0, 0.5)},
    ),
    "generalized-hmc+langevin": ("generalized-hmc+langevin", {"latent": 1}),
}

PARTICLES = 2  # one would not show a mix-up of keys
KEY = 7


def potential(x):
    """Neither convex nor harmonic, and its coordinates interact."""
    return -0.1 * jnp.sum(x**4) - 0.5 * jnp.sum((x - 0.3) ** 2) + 0.4 * jnp.sin(2 * x[0]) * x[-1]


def options_of(name):
    return Options(**{"steps": 2, "step_size": 0.3, **DYNAMICS[name][1]})


def first_momentum(name, dim):
    """Its dimension and its λ."""
    options = options_of(name)
    latent = options.latent or dim if DYNAMICS[name][0].startswith("generalized") else dim
    return latent, options.precisions[0]


def precisions(name):
    """λ of every momentum in the order of their use."""
    options, kinds = options_of(name), DYNAMICS[name][0].split("+")
    return options.precisions[-1:] if kinds == ["none"] else options.precisions * len(kinds)


def perturbed(tree, scale=0.3):
    """Every learnt number moved off its start, where S = 0 and g is the identity."""
    rng = np.random.default_rng(0)
    numbers, rest = split(tree)

    def move(leaf):  # in NumPy: a sum in JAX is a program for each shape
        return jnp.asarray(np.asarray(leaf) + scale * rng.normal(size=leaf.shape))

    return eqx.combine(jax.tree.map(move, numbers), rest)


@lru_cache
def dynamics_of(name, dim):
    return perturbed(build_dynamics(DYNAMICS[name][0], options_of(name), dim, jax.random.key(1)))


@lru_cache
def start_of(kind, dim, latent, precision):
    config = StartConfig(kind, layers=2, width=8, depth=1)
    return perturbed(build_start(config, dim, latent, precision, 1.5, jax.random.key(2)))


def embedding(name, kind, dim=2):
    start = start_of(kind, dim, *first_momentum(name, dim))
    return Embedding(start, dynamics_of(name, dim), precisions(name)[-1])


def draw(name, kind, dim=2):
    """The particles by the library.

    Without compilation: of so many small programs, each would take seconds to compile.
    """
    with jax.disable_jit():
        points = jnp.zeros((PARTICLES, dim))
        return embedding(name, kind, dim).draw(potential, points, None, jax.random.key(KEY))[0]


def unrolled(dynamics, key):
    """The single steps within, each with its key."""
    if isinstance(dynamics, Chain):
        layers = dynamics.layers
    elif isinstance(dynamics, Repeat | PerStep):
        layers = [layer for i in range(dynamics.count) for layer in _layers(dynamics, i)]
    else:
        return [(dynamics, key)]
    keys = jax.random.split(key, len(layers))
    return [pair for layer in zip(layers, keys, strict=True) for pair in unrolled(*layer)]


def _layers(dynamics, index):
    """Step `index`, after what is between it and the one before."""
    if isinstance(dynamics, Repeat):
        layer, between = dynamics.layer, dynamics.between
    else:
        layer = _at(dynamics.layers, index)
        between = _at(dynamics.between, index - 1) if index else None
    return [between, layer] if index else [layer]


def _at(module, index):
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, module)


def score(x):
    """The gradient of `potential`, by hand."""
    gradient = -0.4 * x**3 - (x - 0.3)
    gradient[0] += 0.8 * np.cos(2 * x[0]) * x[-1]
    gradient[-1] += 0.4 * np.sin(2 * x[0])
    return gradient


def clipped(clip, score):
    if isinstance(clip, ClipNorm):
        norm = np.sqrt(np.sum(score**2))
        return score * clip.limit / norm if norm.real > clip.limit else score
    if isinstance(clip, ClipValue):
        return np.where(abs(score.real) > clip.limit, clip.limit * np.sign(score.real), score)
    return score


def net(module, *inputs):
    """A perceptron with SiLUs."""
    z = np.concatenate(inputs)
    for layer in module.net.layers[:-1]:
        z = layer.weight @ z + layer.bias
        z = z / (1 + np.exp(-z))
    return module.net.layers[-1].weight @ z + module.net.layers[-1].bias


def log_scale(module, *inputs):
    return 0.0 if module is None else module.bound * np.tanh(net(module, *inputs))


def change(module, *inputs):
    """g: its first input projected, and a net of all."""
    return inputs[0] if module is None else module.matrix @ inputs[0] + net(module, *inputs)


def half_kick(step, x, v):
    force = clipped(step.kick.clip, score(x))
    scale = np.exp(log_scale(step.kick.scale, force, x))
    return v * scale + step.step_size / 2 * change(step.kick.force, force, x)


def push(steps, x, v, *fresh):
    """(x, all momenta) at the end."""
    fresh, retired = list(fresh), []
    for step in steps:
        if isinstance(step, Refresh):
            retired.append(v)
            v = fresh.pop(0)
            continue
        v = half_kick(step, x, v)
        x = x * np.exp(log_scale(step.drift.scale, v))
        x = x + step.step_size * change(step.drift.velocity, v)
        if isinstance(step, Leapfrog):
            v = half_kick(step, x, v)
    return x, *retired, v


def log_det(steps, inputs, step=1e-30):
    """log |det| of the Jacobian of `push`, a complex step a column."""
    z, cuts = np.concatenate(inputs), np.cumsum([part.size for part in inputs])[:-1]
    columns = [
        np.concatenate(push(steps, *np.split(z + 1j * step * unit, cuts))).imag / step
        for unit in np.eye(z.size)
    ]
    return np.linalg.slogdet(np.array(columns))[1]


@lru_cache
def begun(kind, dim, latent, precision):
    """The start's own draws (x0, v0, log q0), which have tests of their own."""
    start = paramax.unwrap(start_of(kind, dim, latent, precision))
    start_keys, move_keys = jax.random.split(jax.random.key(KEY), (2, PARTICLES))
    with jax.disable_jit():
        draws = jax.vmap(lambda key: start.draw(jnp.zeros(dim), None, key))(start_keys)
    return list(zip(*map(np.asarray, draws), move_keys, strict=True))


def reference(name, kind, dim=2):
    """For each particle: (x, all momenta) at the end, and the log density there."""
    as_numpy = lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf  # noqa: E731
    dynamics = jax.tree.map(as_numpy, paramax.unwrap(dynamics_of(name, dim)))
    for x, v, log_q, key in begun(kind, dim, *first_momentum(name, dim)):
        pairs, fresh = unrolled(dynamics, key), []
        for step, step_key in pairs:
            if isinstance(step, Refresh):
                scale = step.momentum.scale
                fresh.append(scale * np.asarray(jax.random.normal(step_key, scale.shape)))
                log_q = log_q + stats.norm.logpdf(fresh[-1], scale=scale).sum()
        steps, inputs = [step for step, _ in pairs], (x, v, *fresh)
        yield push(steps, *inputs), log_q - log_det(steps, inputs)


PAIRS = [(name, "deep-latent", 2) for name in DYNAMICS]
WITH_ALL = ["none", "hmc", "generalized-hmc, latent 3", "generalized-hmc+langevin"]
PAIRS += [(name, start, 2) for name, start in product(WITH_ALL, FLOWS)]
# In one dimension some flows are made otherwise.
LINE = ["none", "hmc"]
PAIRS += [(name, start, 1) for name, start in product(LINE, ["coupling", "spline"])]


def check(name, start, dim=2):
    particles = draw(name, start, dim)
    for index, ((x, *momenta), log_q) in enumerate(reference(name, start, dim)):
        particle = jax.tree.map(lambda leaf, i=index: np.asarray(leaf[i]), particles)
        np.testing.assert_allclose(particle.x, x, atol=1e-10)
        np.testing.assert_allclose(particle.v, momenta[-1], atol=1e-10)
        np.testing.assert_allclose(particle.score, score(x), atol=1e-10)
        np.testing.assert_allclose(particle.log_q, log_q, atol=1e-8)
        pairs = zip(momenta, precisions(name), strict=True)
        kinetic = -sum(stats.norm.logpdf(v, scale=λ**-0.5).sum() for v, λ in pairs)
        np.testing.assert_allclose(particle.kinetic, kinetic, atol=1e-10)
        np.testing.assert_allclose(particle.f, potential(x), atol=1e-10)
        log_weight = potential(x) - kinetic - log_q
        np.testing.assert_allclose(particle.log_weight, log_weight, atol=1e-8)


@pytest.mark.parametrize(("name", "start", "dim"), PAIRS)
def test_the_density_is_exact(name, start, dim):
    assert embedding(name, start, dim).exact
    check(name, start, dim)


def without_log_det(method):
    return lambda self, *inputs: method(self, *inputs[:-1], jnp.zeros(()))


@pytest.mark.parametrize("forgotten", ["kicked", "moved"])
def test_a_forgotten_log_determinant_is_seen(monkeypatch, forgotten):
    """The negative control: drop S_v's, or S_x's, and the comparison must fail, for log_q."""
    monkeypatch.setattr(Particle, forgotten, without_log_det(getattr(Particle, forgotten)))
    check("hmc", "deep-latent")  # which has neither
    with pytest.raises(AssertionError, match=r"atol=1e-08"):
        check("generalized-hmc", "deep-latent")


@pytest.mark.parametrize("name", ["hmc, norm clipped", "hmc, value clipped"])
def test_the_clips_of_the_table_bite(name):
    clipped, plain = (draw(n, "deep-latent") for n in (name, "hmc"))
    assert np.all(np.abs(clipped.x - plain.x).max(axis=1) > 1e-3)


def test_compiled_it_is_the_same():
    name, start = "hmc, precisions", "deep-latent"
    points = jnp.zeros((PARTICLES, 2))
    sampler = embedding(name, start)
    compiled, _ = eqx.filter_jit(sampler.draw)(potential, points, None, jax.random.key(KEY))
    for a, b in zip(jax.tree.leaves(compiled), jax.tree.leaves(draw(name, start)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_an_embedding_is_exact_only_if_both_parts_are():
    exact = embedding("none", "deep-latent")
    assert exact.exact
    assert not Embedding(Empirical(CentredNormal(2)), exact.dynamics).exact
    assert not Embedding(exact.start, Box(-1.0, 1.0)).exact
