"""The compiler's options: those it knows are used, others do no harm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.train.compiling import Hopeful, carried_out, compiled, known

KNOWN = ("xla_cpu_enable_fast_math", "False")


def test_an_option_that_the_compiler_does_not_know_is_not_asked_for():
    assert known((("xla_no_such_option", ""), KNOWN)) == dict([KNOWN])


def test_a_value_that_the_compiler_does_not_know_is_not_asked_for():
    assert known((("xla_cpu_enable_fast_math", "perhaps"),)) == {}


def test_options_change_no_result():
    """Small whole numbers: their sums are exact in any order."""
    x = np.arange(12.0).reshape(3, 4)

    def product(x):
        return x @ x.T

    np.testing.assert_array_equal(compiled(product)(jnp.asarray(x)), x @ x.T)


def test_wishes_reach_the_compiler(monkeypatch, tmp_path):
    """By one whose effect can be seen: what is compiled is written into a folder."""
    monkeypatch.setattr("fenchel.train.compiling.WISHES", {"xla_dump_to": str(tmp_path)})
    compiled(lambda x: x + 1)(jnp.ones(3))
    assert any(tmp_path.iterdir())


def test_a_function_is_compiled_once():
    traces = []

    def count(x):
        traces.append(x)
        return x

    for _ in range(3):
        compiled(count)(jnp.ones(2))
    assert len(traces) == 1


def failing(x):
    raise jax.errors.JaxRuntimeError("no such kernel")


def test_what_fails_with_an_experimental_option_is_done_without():
    way = Hopeful(failing, lambda x: x + 1)
    with pytest.warns(UserWarning, match="goes on without them, a little slower: no such kernel"):
        assert way(1) == 2
    assert way(x=2) == 3  # without a warning: the first is not tried again
    assert Hopeful(lambda x: -x, failing)(3) == -3


def test_what_fails_without_it_too_is_an_error():
    way = Hopeful(failing, lambda x: failing(x))
    with (
        pytest.warns(UserWarning, match="goes on without"),
        pytest.raises(jax.errors.JaxRuntimeError, match="no such kernel"),
    ):
        way(1)
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="no such kernel"):
            way(1)


def test_an_error_that_is_not_the_compilers_is_not_tried_again():
    def wrong(x):
        raise ValueError("a wrong shape")

    with pytest.raises(ValueError, match="a wrong shape"):
        Hopeful(wrong, lambda x: x)(1)


def test_want_of_memory_is_not_tried_again():
    def large(x):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    with pytest.raises(jax.errors.JaxRuntimeError, match="Out of memory"):
        Hopeful(large, lambda x: x)(1)


def test_want_of_memory_is_said_in_words():
    """As a GPU was seen to complain of it; a CPU's process would just be ended."""

    def large(x):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of")

    with pytest.raises(InputError, match=r"too little memory left .* smaller training\.batch"):
        carried_out(large, 1)


def test_other_errors_of_a_program_stay_what_they_are():
    with pytest.raises(jax.errors.JaxRuntimeError, match="no such kernel"):
        carried_out(failing, 1)


@pytest.mark.parametrize(("backend", "ways"), [("cpu", 1), ("gpu", 2)])
def test_experimental_options_are_for_gpus(monkeypatch, backend, ways):
    hope = {"xla_cpu_enable_fast_math": False}  # one that every version has heard of
    asked = []
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr("fenchel.train.compiling.HOPES", hope)
    monkeypatch.setattr(
        "fenchel.train.compiling._jitted", lambda function, options: asked.append(options)
    )
    assert isinstance(compiled.__wrapped__(jnp.sin), Hopeful) == (ways == 2)
    assert sorted(hope.items() <= options.items() for options in asked) == [False, True][:ways]
