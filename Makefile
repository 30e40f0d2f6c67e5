# Everything starts from a bare machine: Python >= 3.11 with pip, and make.
#   make PYTHON=python3.12 VENV=.venv312 test     another interpreter, in an environment of its own
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
PYTEST_ARGS ?= -n auto --dist loadfile

BIN := $(VENV)/bin
# Each stands in the environment once its packages are installed: those of claims and flows, also those of the page, and all.
CORE := $(VENV)/.core
LAB := $(VENV)/.lab
ALL := $(VENV)/.all
# Stands beside the environment while an installation is under way: whoever finds it knows that the
# environment is half made and builds it afresh.
UNFINISHED := $(VENV).installing
UV := $(BIN)/uv pip install --python $(BIN)/python
# Containers often set this: every process would then compile all that it imports anew, some three seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup again reproduce lab test test-all stress faults lint names notebooks docs bench release lock clean
.DELETE_ON_ERROR:

help:
	@echo "make setup      install everything from requirements.lock into $(VENV)"
	@echo "make reproduce  check the claims of zheng2024 and draw its figures (ARGS='--preset full' …)"
	@echo "make lab        open the interactive page (ARGS='--port 9000')"
	@echo "make test       run the tests that take seconds"
	@echo "make test-all   run all tests: also those that train, drive browsers, stop commands and break files"
	@echo "make stress     run load, faults, kills and mutants of files at full size"
	@echo "make faults     put faults into the core, and see which test notices each"
	@echo "make lint       ruff, mypy, import-linter"
	@echo "make names      write the names of new kinds where they are listed"
	@echo "make notebooks  write the tutorials as notebooks, with their outputs"
	@echo "make docs       run the blocks of all pages, build the site into docs/_build/html"
	@echo "make bench      measure speed and memory into benchmarks/results/"
	@echo "make release    build wheel and source distribution into dist/, and try what is installed"
	@echo "make lock       resolve requirements.lock anew"
	@echo "make clean      remove caches, $(VENV) and built files; results stay"

setup: $(ALL)

$(CORE): requirements.lock pyproject.toml | $(BIN)/uv
	$(call install,,$(CORE))

$(LAB): requirements.lock pyproject.toml | $(BIN)/uv
	$(call install,--extra lab,$(CORE) $(LAB))

$(ALL): requirements.lock pyproject.toml | $(BIN)/uv
	$(call install,--extra dev,$(CORE) $(LAB) $(ALL))

# Packages of the lock, with their hashes, and this folder; then the stamps of all that is there now.
define install
@touch $(UNFINISHED)
@$(UV) --requirement pyproject.toml $(1) --constraint requirements.lock --require-hashes
@$(UV) --editable . --no-deps --build-constraint requirements.lock --require-build-hashes --quiet
@touch $(2) && rm $(UNFINISHED)
endef

$(BIN)/uv: requirements.lock $(if $(wildcard $(UNFINISHED)),again)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is not Python 3.11 or newer; name one that is: make PYTHON=python3.12 setup" >&2; \
	  exit 1; }
	@if [ -e $(UNFINISHED) ] || ! $(BIN)/python -c pass 2>/dev/null; then \
	  echo "creating $(VENV)"; \
	  touch $(UNFINISHED) && $(PYTHON) -m venv --clear --without-pip $(VENV); \
	fi
	@touch $(UNFINISHED)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.txt
	@$(PYTHON) -m pip --python $(BIN)/python install --quiet --require-hashes --requirement $(VENV)/uv.txt
	@touch $@ && rm $(UNFINISHED)

reproduce: $(CORE)
	@$(BIN)/mesascope reproduce zheng2024 $(ARGS)

lab: $(LAB)
	@$(BIN)/mesascope lab $(ARGS)

PYTEST := $(BIN)/python -m pytest -p no:benchmark

test: $(ALL)
	$(PYTEST) -m "not slow" $(PYTEST_ARGS) $(ARGS)

test-all: $(ALL)
	$(PYTEST) $(PYTEST_ARGS) $(ARGS)

# One after the other: under load the waits of some of them are too short.
stress: $(ALL)
	MESASCOPE_LOAD_SECONDS=60 MESASCOPE_FAULT_RUNS=200 MESASCOPE_KILLS=100 MESASCOPE_MUTANTS=6000 \
	  $(PYTEST) tests/lab/test_load.py tests/records/store/test_faults.py tests/studies/sweeps/test_faults.py \
	  tests/harness $(ARGS)

# Twenty deliberate faults in the core, each of which `make test` has to notice.
faults: $(ALL)
	$(BIN)/python tests/harness/core_faults.py

# Blocks of code on pages are narrower than files, so that the site shows them whole.
PAGES := $(wildcard docs/*.md docs/*/*.md)

lint: $(ALL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff format --check --line-length 88 $(PAGES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

names: $(ALL)
	$(BIN)/python docs/write_names.py

notebooks: $(ALL)
	$(BIN)/python docs/write_notebooks.py

# Blocks that the tests have run with this code are not run again.
docs: $(ALL)
	$(BIN)/python docs/extensions/blocks.py
	$(BIN)/python -m sphinx -W --keep-going --quiet docs docs/_build/html
	@echo docs/_build/html/index.html

bench: $(ALL)
	@mkdir -p benchmarks/results
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results/run.json $(ARGS)

# The wheel is built from the source distribution; both are installed without extras into empty environments, and used there.
release: $(ALL)
	@rm -rf dist
	@$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python
	@for file in dist/*.whl dist/*.tar.gz; do .ci/try-installed $(BIN) $$file || exit 1; done

lock: $(ALL)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-emit-index-url \
	  --no-annotate --no-header --no-config --quiet --upgrade --output-file requirements.lock

clean:
	rm -rf $(VENV) $(UNFINISHED) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
