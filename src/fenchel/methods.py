"""The methods by name: what each needs, what it gives, and what a step of it costs.

`d` is the number of columns, f one evaluation of the potential, ∇f one of its gradient.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """A line of the table."""

    summary: str
    needs: str
    gives: str
    cost: str  # for each datum of a batch
    discrete: bool = False  # whether it fits discrete data too
    bounded: bool = True  # whether it can keep to a domain
    curved: bool = False  # whether it sees the potential's curvature


_CHAINS = "chains, no normaliser"
_NONE = "no sampler, no normaliser"

METHODS = {
    "ade": Method(
        "adversarial dynamics embedding: the model and its sampler learnt together",
        "gradients",
        "sampler, log Z with a bound",
        "about 3 x (start + dynamics steps x ∇f)",
        bounded=False,
    ),
    "nf": Method(
        "primal-dual with a normalising flow alone: the embedding without dynamics",
        "gradients",
        "sampler, log Z with a bound",
        "about 3 x start",
        bounded=False,
    ),
    "mle": Method(
        "maximum likelihood, log Z by quadrature or by enumeration: the oracle",
        "1 or 2 columns, or at most 20 spins",
        "normaliser",
        "all nodes or states x f, a batch",
        discrete=True,
    ),
    "cd": Method(
        "contrastive divergence: k steps of a Markov chain from the data",
        "gradients, or conditionals if discrete",
        _CHAINS,
        "k x leapfrogs x ∇f, or k x d x f",
        discrete=True,
    ),
    "pcd": Method(
        "persistent contrastive divergence: chains that never restart",
        "gradients, or conditionals if discrete",
        _CHAINS,
        "k x leapfrogs x ∇f, or k x d x f",
        discrete=True,
    ),
    "replay-cd": Method(
        "contrastive divergence from a replay buffer, energies regularised",
        "gradients",
        _CHAINS,
        "k x leapfrogs x ∇f",
        bounded=False,
    ),
    "ensemble-cd": Method(
        "contrastive divergence with several kernels side by side",
        "gradients",
        _CHAINS,
        "k x leapfrogs x ∇f",
    ),
    "score-matching": Method(
        "the Fisher divergence, by the Hessian's exact trace; also on a half-line or in a box",
        "Hessians",
        _NONE,
        "d x ∇f",
        curved=True,
    ),
    "sliced-score-matching": Method(
        "the Fisher divergence, by the Hessian along random directions",
        "Hessian products",
        _NONE,
        "probes x ∇f",
        curved=True,
    ),
    "denoising-score-matching": Method(
        "the score of the data smoothed by noise",
        "gradients",
        _NONE + " (of the smoothed data)",
        "2 x ∇f",
        bounded=False,
    ),
    "kernel-stein": Method(
        "the (diffusion) kernel Stein discrepancy, over all pairs of a batch",
        "gradients",
        _NONE,
        "1 x ∇f, and the batch's size in pairs",
        bounded=False,
    ),
    "pseudo-likelihood": Method(
        "each column given the others; by quadrature along it if continuous",
        "conditionals",
        _NONE,
        "d x nodes (or states) x f",
        discrete=True,
    ),
    "composite-likelihood": Method(
        "each block of columns given the others",
        "conditionals",
        _NONE,
        "blocks x nodes (or states) in a block x f",
        discrete=True,
    ),
    "non-local": Method(
        "non-local contrast: a datum against the model within a set around it",
        "sets: overlapping strips in 1 or 2 columns, neighbourhoods if discrete",
        _NONE,
        "all nodes x f a batch, or neighbours² x f",
        discrete=True,
    ),
    "mpf": Method(
        "minimum probability flow: how fast mass begins to leave the data",
        "gradients for proposals, or bit flips if discrete",
        _NONE,
        "2 x leapfrogs x ∇f, or neighbours x f",
        discrete=True,
    ),
    "nce": Method(
        "noise-contrastive estimation, the normaliser learnt",
        "noise of a known density, fitted to the data",
        "normaliser",
        "(1 + noise ratio) x f",
    ),
}
