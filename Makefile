# Every command sets up what it needs first: .venv, once, and again when pyproject.toml or the constraints change.
PYTHON ?= python3
BIN := .venv/bin
# Two q: warnings about the machine's own pip setup help nobody here, and errors still show.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints-cpu.txt

# How many processes share the tests: `make test JOBS=8` where there are more cores. JOBS=0 is one, for a debugger.
JOBS ?= 2

# Of the soak of `make test-attacks`.
SECONDS ?= 1800

# The clients of the field, each kind in an environment of its own: none of them belongs in ours. uv installs them in
# a minute, side by side; pip takes ten.
ECOSYSTEM := .ecosystem
CLIENTS := aiperf clients frameworks node peft schemathesis
UV := $(ECOSYSTEM)/installer/bin/uv

.PHONY: help venv test test-attacks test-ecosystem ecosystem check format serve wheel clean

help: ## show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 21

venv: .venv/.done ## set up .venv (PYTHON=python3.12 to choose the interpreter)

test: .venv/.done ## run the tests
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-attacks: .venv/.done ## storms, faults, fuzzing and a soak of half an hour against the real stack
	$(BIN)/python -m pytest -m attacks tests/attacks --seconds=$(SECONDS)

test-ecosystem: .venv/.done ecosystem ## run other people's clients against the real stack
	$(BIN)/python -m pytest -m ecosystem tests/ecosystem

ecosystem: ## set up other people's clients
	@$(MAKE) -s -j4 $(CLIENTS:%=$(ECOSYSTEM)/%.done)

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
	@rm -rf build/lib* build/bdist.* dist *.egg-info
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	@rm -rf build/lib* build/bdist.*
	@ls dist/*.whl

clean: ## remove .venv, caches and build products
	rm -rf .venv $(ECOSYSTEM) .*_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Without build isolation: the build tools are then the pinned ones too, installed first. pyvips is published as source
# only; cffi and pkgconfig are what it builds with.
.venv/.done: pyproject.toml setup.py constraints.txt constraints-cpu.txt
	@echo "setting up .venv: about two minutes and 1.5 GB the first time"
	@$(PYTHON) -m venv .venv
	@$(PIP) setuptools cffi pkgconfig
	@$(PIP) --no-build-isolation -e '.[dev,triton]'
	@touch $@

# Without dependencies: the files name every package, and nothing else may come along.
$(ECOSYSTEM)/%.done: tests/ecosystem/requirements-%.txt | $(UV)
	@rm -rf $(ECOSYSTEM)/$*
	@$(UV) venv -q -p $(ECOSYSTEM)/installer/bin/python $(ECOSYSTEM)/$*
	@$(UV) pip install -q --no-deps -p $(ECOSYSTEM)/$*/bin/python -r $<
	@touch $@

$(ECOSYSTEM)/node.done: tests/ecosystem/package.json tests/ecosystem/package-lock.json | $(UV)
	@cp $^ $(ECOSYSTEM)
	@npm ci --prefix $(ECOSYSTEM) --silent --ignore-scripts --no-audit --no-fund
	@touch $@

$(UV):
	@echo "setting up $(ECOSYSTEM) from PyPI and npm: about two minutes and 1.7 GB the first time"
	@$(PYTHON) -m venv $(ECOSYSTEM)/installer
	@$(ECOSYSTEM)/installer/bin/python -m pip install -qq --disable-pip-version-check uv==0.13.7
