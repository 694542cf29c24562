# `make demo` trains the recogniser, `make test` runs the tests; both set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_ARGS) -e

.PHONY: demo test test-slow check format bench clean

demo: $(INSTALLED)
	$(BIN)/vitreous train --preset digits-fast --recipe fast

# What the README says is run by `make check`.
test: $(DEVELOPED)
	$(BIN)/pytest -n 2 --ignore tests/test_docs.py

test-slow: $(DEVELOPED)
	$(BIN)/pytest -n 2 -m slow

check: $(DEVELOPED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/pytest -n 0 -q tests/test_docs.py

format: $(DEVELOPED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --no-cache --fix .

bench: $(INSTALLED)
	$(BIN)/python benchmarks/attention_paths.py
	$(BIN)/python benchmarks/time_to_accuracy.py

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vitreous needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) .
	touch $@

$(DEVELOPED): $(INSTALLED)
	$(INSTALL) '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
