"""The compiler's options: those it knows are used, others do no harm."""

import jax.numpy as jnp
import numpy as np

from fenchel.train.compiling import compiled, known

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
