"""How the training loop is compiled."""

from collections.abc import Callable
from functools import cache

import equinox as eqx
import jax

# On a CPU, XLA hands matrix products to a library, and a call of it takes longer than the products
# of small nets do: without it the defaults take a fifth less time. On a GPU it means nothing.
WISHES = {"xla_cpu_experimental_ynn_fusion_type": ""}


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
