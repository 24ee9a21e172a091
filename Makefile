# Two commands, both from a bare python3 (3.11 or newer): `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test browser lint format benchmarks clean

demo: .venv/installed
	rm -rf runs/demo
	$(BIN)/fenchel fit moons --steps 1500 --out runs/demo

test: lint browser
	$(BIN)/python -m pytest

# The report's tests drive Debian's Chromium, installed where it is missing and can be; where it
# cannot, they are skipped and say so.
APT := timeout 600 apt-get -qq -y -o Acquire::Retries=1 -o Acquire::http::Timeout=30
browser:
	@{ command -v chromium && command -v chromedriver || { test "$$(id -u)" = 0 && $(APT) update \
		&& $(APT) install --no-install-recommends chromium chromium-driver; }; } >/dev/null 2>&1 || true

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Hours on a CPU; the committed results name the machines they come from.
benchmarks: .venv/installed
	$(BIN)/python -m pip install --quiet --editable '.[benchmarks]'
	$(BIN)/python -m benchmarks.speed
	$(BIN)/fenchel bench toys --out runs/toys --methods sm,nf,cd15,ade-paper,ade,flowjax
	$(BIN)/fenchel bench gaussian --out runs/gaussian

# The environment is made once, and again whenever pyproject.toml changes.
.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Fenchel needs Python 3.11 or newer: set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv runs .mypy_cache .ruff_cache .pytest_cache
