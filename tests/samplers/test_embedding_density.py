"""Every dynamics with every start: the density carried along is that of the Jacobian, in 64-bit.

One table of embeddings, and a reference that each is compared with. The reference follows the same
particle with the momenta as explicit inputs. What it returns is a function of the start's draw and
those momenta alone, so that its Jacobian gives the density of the end of the path with no formula
of the library's in between.
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
from fenchel.dynamics import Chain, Leapfrog, Options, Particle, PerStep, Refresh, Repeat
from fenchel.parameters import split
from fenchel.samplers import Embedding

pytestmark = pytest.mark.usefixtures("x64")

STARTS = ["planar", "coupling", "spline", "deep-latent"]

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
    "langevin, shared": ("langevin", {"per_step": False, "remat": True}),
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


def momentum_dims(name, dim):
    """Of the first momentum in each recipe of a stack."""
    latent = options_of(name).latent or dim
    return [
        latent if kind.startswith("generalized") else dim for kind in DYNAMICS[name][0].split("+")
    ]


def precisions(name):
    """λ of every momentum in the order of their use."""
    options, kinds = options_of(name), DYNAMICS[name][0].split("+")
    return options.precisions[-1:] if kinds == ["none"] else options.precisions * len(kinds)


def perturbed(tree, scale=0.3):
    """Every learnt number moved off its start, where S = 0 and g is the identity."""
    rng = np.random.default_rng(0)
    numbers, rest = split(tree)
    moved = jax.tree.map(lambda leaf: leaf + scale * rng.normal(size=leaf.shape), numbers)
    return eqx.combine(moved, rest)


@lru_cache
def dynamics_of(name, dim):
    return perturbed(build_dynamics(DYNAMICS[name][0], options_of(name), dim, jax.random.key(1)))


@lru_cache
def start_of(kind, dim, latent, precision=1.0):
    config = StartConfig(kind, layers=1, width=8, depth=1)
    return perturbed(build_start(config, dim, latent, precision, 1.5, jax.random.key(2)))


def embedding(name, kind, dim=2):
    start = start_of(kind, dim, momentum_dims(name, dim)[0], options_of(name).precisions[0])
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
        layers = [(layer, jax.random.fold_in(key, i)) for i, layer in enumerate(dynamics.layers)]
    elif isinstance(dynamics, Repeat | PerStep):
        keys = jax.random.split(key, dynamics.count)
        layers = [(_layers(dynamics, i), keys[i]) for i in range(dynamics.count)]
    else:
        return [(dynamics, key)]
    return [pair for layer in layers for pair in unrolled(*layer)]


def _layers(dynamics, index):
    """Step `index`, after what is between it and the one before."""
    if isinstance(dynamics, Repeat):
        layer, between = dynamics.layer, dynamics.between
    else:
        layer = _at(dynamics.layers, index)
        between = _at(dynamics.between, index - 1) if index else None
    return Chain([between, layer]) if index else layer


def _at(module, index):
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, module)


def push(steps, x, v, fresh):
    """(x, all momenta) at the end: the formulas of the paper's section 3.2, and nothing else."""
    score = jax.grad(potential)
    fresh, retired = list(fresh), []

    def kicked(step, x, v):
        clipped = step.kick.clip(score(x))
        scale = 0.0 if step.kick.scale is None else step.kick.scale(clipped, x)
        force = clipped if step.kick.force is None else step.kick.force(clipped, x)
        return v * jnp.exp(scale) + step.step_size / 2 * force

    for step in steps:
        if isinstance(step, Refresh):
            retired.append(v)
            v = fresh.pop(0)
            continue
        v = kicked(step, x, v)
        scale = 0.0 if step.drift.scale is None else step.drift.scale(v)
        x = x * jnp.exp(scale)
        x += step.step_size * (v if step.drift.velocity is None else step.drift.velocity(v))
        if isinstance(step, Leapfrog):
            v = kicked(step, x, v)
    return x, [*retired, v]


def split_at(z, sizes):
    return jnp.split(z, np.cumsum(sizes)[:-1])


class Reference(eqx.Module):
    """What the library must have drawn, and its density by the Jacobian."""

    x: np.ndarray
    momenta: list[np.ndarray]
    log_q: np.ndarray


def reference(name, kind, dim=2):
    sampler = paramax.unwrap(embedding(name, kind, dim))

    def inputs(key):
        start_key, move_key = jax.random.split(key)
        x, v, log_q = sampler.start.draw(jnp.zeros(dim), None, start_key)
        pairs = unrolled(sampler.dynamics, move_key)
        fresh = [step.momentum.draw(key)[0] for step, key in pairs if isinstance(step, Refresh)]
        return (x, v, *fresh), log_q

    steps = [step for step, _ in unrolled(sampler.dynamics, jax.random.key(0))]
    with jax.disable_jit():
        parts, log_q = jax.vmap(inputs)(jax.random.split(jax.random.key(KEY), PARTICLES))
        sizes = [part.shape[1] for part in parts]

        def flat(z):
            x, momenta = push(steps, *_grouped(split_at(z, sizes)))
            return jnp.concatenate([x, *momenta])

        z = jnp.concatenate(parts, axis=1)
        ends, jacobians = jax.vmap(lambda z: (flat(z), jax.jacfwd(flat)(z)))(z)
    refreshes = [step for step in steps if isinstance(step, Refresh)]
    for v, step in zip(parts[2:], refreshes, strict=True):
        log_q = log_q + stats.norm.logpdf(v, scale=step.momentum.scale).sum(axis=1)
    log_q = log_q - np.linalg.slogdet(jacobians)[1]
    ends = np.asarray(ends)
    sizes_after = [dim, *sizes[1:]]
    x, *momenta = np.split(ends, np.cumsum(sizes_after)[:-1], axis=1)
    return Reference(x, momenta, np.asarray(log_q))


def _grouped(parts):
    x, v, *fresh = parts
    return x, v, fresh


PAIRS = [(name, start, 2) for name, start in product(DYNAMICS, STARTS)]
# In one dimension some flows are made otherwise.
LINE = ["none", "hmc", "generalized-hmc, latent 3"]
PAIRS += [(name, start, 1) for name, start in product(LINE, ["coupling", "spline"])]


def check(name, start, dim=2):
    particles, exact = draw(name, start, dim), reference(name, start, dim)
    np.testing.assert_allclose(particles.x, exact.x, atol=1e-10)
    np.testing.assert_allclose(particles.v, exact.momenta[-1], atol=1e-10)
    np.testing.assert_allclose(particles.log_q, exact.log_q, atol=1e-8)
    kinetic = -sum(
        stats.norm.logpdf(v, scale=precision**-0.5).sum(axis=1)
        for v, precision in zip(exact.momenta, precisions(name), strict=True)
    )
    np.testing.assert_allclose(particles.kinetic, kinetic, atol=1e-10)
    f = [float(potential(x)) for x in exact.x]
    np.testing.assert_allclose(particles.f, f, atol=1e-10)
    np.testing.assert_allclose(particles.log_weight, f - kinetic - exact.log_q, atol=1e-8)


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
    name, start = "hmc+generalized-langevin", "deep-latent"
    points = jnp.zeros((PARTICLES, 2))
    sampler = embedding(name, start)
    compiled, _ = eqx.filter_jit(sampler.draw)(potential, points, None, jax.random.key(KEY))
    for a, b in zip(jax.tree.leaves(compiled), jax.tree.leaves(draw(name, start)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
