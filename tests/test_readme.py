"""The README's Python runs as it is printed, but for the size of what it fits."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.config import Config

README = Path(__file__).parents[1] / "README.md"
SMALL = Config().with_values(
    potential__width=8,
    potential__depth=1,
    start__layers=1,
    start__width=8,
    start__depth=1,
    dynamics__steps=1,
)


def snippets() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.usefixtures("compiled_once", "few_draws")
def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {
        "small": SMALL,
        "x": np.zeros((5, 2)),
        "data": np.random.default_rng(0).normal(size=(100, 1)),
    }
    code = "\n".join(snippets())
    quick = code.replace("steps=1500", "steps=2, config=small")
    assert quick.count("config=small") == 2
    exec(quick, names)
    assert names["fit"].f.potential.parameters.keys() == {"x", "x^2", "-x^4"}
    assert names["particles"].x.shape == (1000, 2)
    assert jnp.isfinite(names["particles"].log_weight).all()
    assert (tmp_path / "model" / "model.json").is_file()
