"""The table of parameters: its numbers are those of the normal distribution, and it prints."""

import numpy as np
import pytest
from scipy import stats

from fenchel.evaluate import ParameterTable


@pytest.fixture
def table() -> ParameterTable:
    return ParameterTable(
        title="Parameters",
        facts=[("Data", "toy"), ("Rows", "1,000"), ("Covariance", "x" * 50)],
        names=("w1", "a longer name"),
        estimates=np.array([1.0, -0.02]),
        covariance=np.array([[0.25, 0.01], [0.01, 0.0001]]),
        notes=("Some <note> " * 10,),
    )


def test_numbers(table):
    np.testing.assert_allclose(table.standard_errors, [0.5, 0.01])
    np.testing.assert_allclose(table.z, [2.0, -2.0])
    np.testing.assert_allclose(table.p_values, 2 * stats.norm.cdf(-2.0))
    half = 1.959964 * table.standard_errors
    np.testing.assert_allclose(table.intervals[:, 0], table.estimates - half, rtol=1e-5)
    np.testing.assert_allclose(table.intervals[:, 1], table.estimates + half, rtol=1e-5)


def test_it_prints_in_columns(table):
    lines = str(table).splitlines()
    rules = [line for line in lines if set(line) in ({"="}, {"-"})]
    assert len(rules) == 4
    width = len(rules[0])
    assert all(len(line) <= width for line in lines)
    row = next(line for line in lines if line.startswith("a longer name"))
    assert row.split()[3:] == ["-0.02", "0.01", "-2.00", "0.046", "-0.0396", "-0.0004004"]
    head = next(line for line in lines if "P>|z|" in line)
    assert head.index("std err") + len("std err") == row.index(" 0.01 ") + len(" 0.01")
    assert "[0.025" in head
    assert any("toy" in line and "1,000" in line for line in lines)  # two facts on a line
    assert "[1] Some <note>" in str(table)


def test_notebooks_see_html(table):
    page = table._repr_html_()
    assert "<td>a longer name</td><td>-0.02</td>" in page
    assert "Some &lt;note&gt;" in page
