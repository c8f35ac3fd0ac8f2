# Every command sets up what it needs first: .venv, once, and again when pyproject.toml or the constraints change.
PYTHON ?= python3
BIN := .venv/bin
# Two q: warnings about the machine's own pip setup help nobody here, and errors still show.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints-cpu.txt

.PHONY: help venv test check format serve wheel clean

help: ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 14

venv: .venv/.done ## set up .venv (PYTHON=python3.12 to choose the interpreter)

test: .venv/.done ## run the tests
	$(BIN)/python -m pytest

check: .venv/.done ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/.done ## format, and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

serve: .venv/.done ## serve the bundled model on the CPU
	$(BIN)/kestrel serve --demo

wheel: .venv/.done ## build the wheel into dist/
	@rm -rf build dist *.egg-info
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	@rm -rf build
	@ls dist/*.whl

clean: ## remove .venv, caches and build products
	rm -rf .venv .*_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Without build isolation: the build tools are then the pinned ones too, installed first. pyvips is published as source
# only; cffi and pkgconfig are what it builds with.
.venv/.done: pyproject.toml setup.py constraints.txt constraints-cpu.txt
	@echo "setting up .venv: about two minutes and 1.3 GB the first time"
	@$(PYTHON) -m venv .venv
	@$(PIP) setuptools cffi pkgconfig
	@$(PIP) --no-build-isolation -e '.[dev,triton]'
	@touch $@
