"""How the training loop is compiled."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax

from fenchel.errors import InputError

Option = str | bool

# On a CPU, XLA hands matrix products to a library, and on some processors a call of it takes longer
# than the products of small nets do: without it the iteration of `benchmarks.speed` took a fifth
# less time on one machine, and as much on another. Where there are vectors of 512 bits, loops do
# not use them unless asked to: a twentieth of that iteration. On a GPU, the products of many steps
# with one weight would be made one, for which their points are copied beside each other: on the
# paper's nets for pictures that took many times as long as the products themselves.
WISHES: dict[str, Option] = {
    "xla_cpu_experimental_ynn_fusion_type": "",
    "xla_cpu_prefer_vector_width": "512",
    "xla_gpu_dot_merger_threshold_mb": "0",
}

# On a GPU, what follows a convolution becomes part of it. It is an experiment of XLA's, and might
# not know what to do with some net.
HOPES: dict[str, Option] = {"xla_gpu_experimental_enable_conv_fusion": True}


@cache
def compiled(function: Callable) -> Callable:
    """As `eqx.filter_jit`, with what is wished of the compiler; only for outermost functions."""
    wishes = known(tuple(WISHES.items()))
    surely = _jitted(function, wishes)
    if jax.default_backend() != "gpu":
        return surely
    return Hopeful(_jitted(function, wishes | known(tuple(HOPES.items()))), surely)


def _jitted(function: Callable, options: dict[str, Option]) -> Callable:
    return eqx.filter_jit(function, compiler_options=options)  # type: ignore[call-overload]


class Hopeful:
    """The first way until it fails, and from then on the second.

    Want of memory is no such failure: the second would want as much.
    """

    def __init__(self, first: Callable, second: Callable):
        self.way, self.second = first, second

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        try:
            return self.way(*arguments, **named)
        except jax.errors.JaxRuntimeError as error:
            if self.way is self.second or _wants_memory(error):
                raise
            warnings.warn(
                "XLA could not do with its experimental options, and goes on without them, a "
                f"little slower: {str(error).strip().splitlines()[0][:300]}",
                stacklevel=2,
            )
        self.way = self.second
        return self.way(*arguments, **named)

    def lower(self, *arguments: Any) -> Any:
        return self.way.lower(*arguments)  # type: ignore[attr-defined]


def carried_out(program: Callable, *arguments: Any) -> Any:
    """What the program returns; want of memory in words."""
    try:
        return program(*arguments)
    except jax.errors.JaxRuntimeError as error:
        if not _wants_memory(error):
            raise
        raise InputError(
            "The device has too little memory left for an iteration: take a smaller training.batch "
            "or a narrower net, set dynamics.remat to true, or end what else runs on it."
        ) from error


def _wants_memory(error: Exception) -> bool:
    return "RESOURCE_EXHAUSTED" in str(error)


@cache
def known(wishes: tuple[tuple[str, Option], ...]) -> dict[str, Option]:
    """Those that this version's compiler understands: an option may go as it came."""
    return {name: value for name, value in wishes if _understood(name, value)}


def _understood(name: str, value: Option) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
