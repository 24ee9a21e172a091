"""Adam as in the paper's released code: gradients are first cut at three deviations."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import optax

from fenchel.shapes import PyTree

DEVIATIONS, MARGIN = 3.0, 0.1


@lru_cache(maxsize=8)
def clipped_adam(rate: float, first_moment: float = 0.9) -> optax.GradientTransformation:
    """Every number of a gradient within three root mean squares of those before it, and a tenth.

    So no single batch can throw the parameters far off, whatever f does there.
    """
    b2 = 0.999
    adam = optax.scale_by_adam(first_moment, b2)

    def update(grads: PyTree, state: optax.ScaleByAdamState, params: PyTree | None = None):
        bias = 1 - b2 ** (state.count + 1)

        def cut(gradient, square):
            bound = DEVIATIONS * jnp.sqrt(square / bias) + MARGIN
            return jnp.clip(gradient, -bound, bound)

        return adam.update(jax.tree.map(cut, grads, state.nu), state, params)

    return optax.chain(
        optax.GradientTransformation(adam.init, update),
        optax.scale(-rate),
    )
