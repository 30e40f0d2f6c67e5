# Everything starts from a bare machine: Python >= 3.11 with pip, and make.
#   make PYTHON=python3.12 VENV=.venv312 test     another interpreter, in an environment of its own
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
PYTEST_ARGS ?= -n auto --dist worksteal

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Stands beside the environment while an installation is under way: whoever finds it knows that the
# environment is half made and builds it afresh.
UNFINISHED := $(VENV).installing

.PHONY: help setup reproduce lab test test-all lint names docs bench lock clean
.DELETE_ON_ERROR:

help:
	@echo "make setup      install everything from requirements.lock into $(VENV)"
	@echo "make reproduce  check the claims of zheng2024 and draw its figures (ARGS='--preset full' …)"
	@echo "make lab        open the interactive page (ARGS='--port 9000')"
	@echo "make test       run the tests"
	@echo "make test-all   run them with load, faults, kills and mutants of files at full size"
	@echo "make lint       ruff, mypy, import-linter"
	@echo "make names      write the public names of new kinds into the stubs"
	@echo "make docs       run the blocks of all pages, build the site into docs/_build/html"
	@echo "make bench      measure speed and memory into benchmarks/results/"
	@echo "make lock       resolve requirements.lock anew"
	@echo "make clean      remove caches, $(VENV) and built files; results stay"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make setup: $(PYTHON) is not Python 3.11 or newer; name one that is: make PYTHON=python3.12 setup" >&2; \
	  exit 1; }
	@rm -f $@
	@if [ -e $(UNFINISHED) ] || ! [ -f $(VENV)/pyvenv.cfg ] || ! $(BIN)/python -c pass 2>/dev/null; then \
	  echo "creating $(VENV)"; \
	  touch $(UNFINISHED) && $(PYTHON) -m venv --clear --without-pip $(VENV); \
	fi
	@touch $(UNFINISHED)
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --require-hashes --requirement requirements.lock
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --no-deps --no-build-isolation --editable .
	@mv $(UNFINISHED) $@

reproduce: $(STAMP)
	@$(BIN)/mesascope reproduce zheng2024 $(ARGS)

lab: $(STAMP)
	@$(BIN)/mesascope lab $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest -p no:benchmark $(PYTEST_ARGS) $(ARGS)

test-all: export MESASCOPE_LOAD_SECONDS = 60
test-all: export MESASCOPE_FAULT_RUNS = 200
test-all: export MESASCOPE_KILLS = 100
test-all: export MESASCOPE_MUTANTS = 6000
test-all: test

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

names: $(STAMP)
	$(BIN)/python docs/write_names.py

# Blocks that the tests have run with this code are not run again.
docs: $(STAMP)
	$(BIN)/python docs/extensions/blocks.py
	$(BIN)/python -m sphinx -W --keep-going --quiet docs docs/_build/html
	@echo docs/_build/html/index.html

bench: $(STAMP)
	@mkdir -p benchmarks/results
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results/benchmark.json $(ARGS)

lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-emit-index-url \
	  --no-annotate --no-header --no-config --quiet --upgrade --output-file requirements.lock

clean:
	rm -rf $(VENV) $(UNFINISHED) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
