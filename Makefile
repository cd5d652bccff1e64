# Everything here needs only make, pip and a Python 3.11 or newer; the rest goes into a virtual environment, .venv.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
PYTEST_ARGS ?=
DEMO_ARGS ?=
SOAK_ARGS ?=
CHANGELOG_ARGS ?=

.PHONY: help setup demo test soak lint format docs docs-serve share matrix changelog bench results clean

help:
	@echo 'make demo    install into .venv, then encode, damage, repair and decode a real input of 200 MB or more'
	echo 'make test    install the test tools, then run every test (PYTEST_ARGS="-k name" picks some)'
	echo 'make soak    run the campaigns against data loss in full (an hour), and write their counts into docs/reliability.md'
	echo 'make lint    ruff, ruff format, mypy, import-linter'
	echo 'make format  let ruff rewrite what it can'
	echo 'make docs    build the pages strictly into site/; make docs-serve serves them while you write'
	echo 'make share   write the manual page and shell completion that are installed, made from the commands'
	echo 'make matrix  a short suite on each Python 3.11 to 3.14 that is to be had'
	echo 'make changelog   move the fragments of changes/ into CHANGELOG.md (CHANGELOG_ARGS=--draft only shows them)'
	echo 'make bench   run the benchmark programs in bench/'
	echo 'make results take the figures of the pages again, on a quiet machine (15 minutes), and write them there'
	echo 'make setup   everything a developer needs, pre-commit hooks included'
	echo 'make clean   remove .venv and what builds and tests leave'
	echo 'PYTHON=/path/to/python3 picks the interpreter of .venv; by default the first that is 3.11 or newer'

# The first candidate that runs, is new enough and can make environments. A shim of a version manager exists without
# running, and Debian's python3 has no ensurepip without python3-venv: both are found out by trying.
$(BIN)/python:
	@usable='import sys, venv; sys.exit(sys.version_info < (3, 11))'
	candidates="$(PYTHON)"
	for python in $${candidates:-python3 python3.14 python3.13 python3.12 python3.11 python /usr/bin/python3}; do
	  "$$python" -c "$$usable" 2>/dev/null || continue
	  echo "virtual environment $(VENV) with $$("$$python" --version)"
	  if "$$python" -c 'import ensurepip' 2>/dev/null; then
	    "$$python" -m venv --clear $(VENV)
	  else
	    "$$python" -m venv --clear --without-pip $(VENV)
	    "$$python" -m pip --python $(BIN)/python install --quiet pip
	  fi
	  exit 0
	done
	echo "no Python 3.11 or newer in: $${candidates:-PATH}; set PYTHON=/path/to/python3" >&2
	exit 1

# One stamp for each set of packages. They are installed again when pyproject.toml changes.
$(VENV)/core.stamp: pyproject.toml | $(BIN)/python
	@$(PIP) --editable .
	touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	@$(PIP) --editable '.[test]'
	touch $@ $(VENV)/core.stamp

$(VENV)/lint.stamp: pyproject.toml | $(BIN)/python
	@$(PIP) --editable '.[test,lint]'
	touch $@ $(VENV)/test.stamp $(VENV)/core.stamp

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	@$(PIP) --editable '.[docs]'
	touch $@ $(VENV)/core.stamp

setup: $(VENV)/lint.stamp
	@if git rev-parse --git-dir >/dev/null 2>&1; then $(BIN)/pre-commit install; fi

demo: $(VENV)/core.stamp
	@$(BIN)/gfcode demo $(DEMO_ARGS)

# One worker a core; a file's tests stay together, for their fixtures are made once a file.
test: $(VENV)/test.stamp
	@$(BIN)/python -m pytest -n auto --dist loadfile $(PYTEST_ARGS)

soak: $(VENV)/test.stamp
	@$(BIN)/python -m tests.reliability.soak $(SOAK_ARGS)

lint: $(VENV)/lint.stamp
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/lint.stamp
	@$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Not --quiet: warnings that are not printed are not counted by --strict either. The theme's notice about the future of
# mkdocs is for its users, not for readers of a build's output.
docs: $(VENV)/docs.stamp
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	echo 'site/index.html'

docs-serve: $(VENV)/docs.stamp
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict

share: $(VENV)/core.stamp
	@$(BIN)/python .ci/share.py

matrix:
	@.ci/matrix

changelog: | $(BIN)/python
	@$(BIN)/python .ci/changelog.py $(CHANGELOG_ARGS)

bench: $(VENV)/core.stamp
	@shopt -s nullglob
	programs=(bench/bench_*.py)
	if [ $${#programs[@]} -eq 0 ]; then echo 'no benchmark programs in bench/' >&2; exit 1; fi
	for program in "$${programs[@]}"; do
	  name=$$(basename "$$program" .py)
	  echo "== python -m bench.$$name"
	  $(BIN)/python -m "bench.$$name"
	done

# Peers that can be had only from a distribution are measured where they are installed.
results: $(VENV)/test.stamp
	@$(PIP) --editable '.[test,peers,gpu-test]'
	$(BIN)/python -m bench.experiment --short --images docs/images
	$(BIN)/python -m bench.tables --short
	$(BIN)/python -m bench.roofline --images docs/images
	$(BIN)/gfcode bench --engine simd --shape 10+4 --length 64KiB --length 16MiB --json >bench/results/readme.json
	mv docs/images/experiment-*.png docs/images/roofline-*.png bench/results/
	$(BIN)/python -m bench.pages

clean:
	@rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -not -path './.git/*' -exec rm -rf {} +
