"""How the training loop is compiled."""

from collections.abc import Callable
from functools import cache

import equinox as eqx
import jax

# Both mean something on a CPU only. XLA hands matrix products to a library, and on some processors
# a call of it takes longer than the products of small nets do: without it the iteration of
# `benchmarks.speed` took a fifth less time on one machine, and as much on another. Where there are
# vectors of 512 bits, loops do not use them unless asked to: a twentieth of that iteration.
WISHES = {
    "xla_cpu_experimental_ynn_fusion_type": "",
    "xla_cpu_prefer_vector_width": "512",
}


@cache
def compiled(function: Callable) -> Callable:
    """As `eqx.filter_jit`, with what is wished of the compiler; only for outermost functions."""
    options = known(tuple(WISHES.items()))
    return eqx.filter_jit(function, compiler_options=options)  # type: ignore[call-overload]


@cache
def known(wishes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Those that this version's compiler understands: an option may go as it came."""
    return {name: value for name, value in wishes if _understood(name, value)}


def _understood(name: str, value: str) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
