# `make` prints what there is. Every target sets up .venv first where it is missing or out of date.

PYTHON ?= python3
VENV   ?= .venv
# A requirement (torch==2.12.0) or a wheel; empty keeps the interpreter's own torch, or takes requirements-torch.txt.
TORCH  ?=
# What `make bench` measures: cpu, cuda, hpu; empty takes the best device present.
DEVICE ?=
# The address that shows this tree, for the metadata and the READMEs of `make dist`.
HOME_PAGE ?=
# More words for the program that a target starts: make run ARGS="--epochs 1", make test ARGS="-k loader".
ARGS   ?=

# The environment of `make test-tensorflow`: everything above, and TensorFlow.
VENV_TENSORFLOW ?= .venv-tensorflow

BIN   := $(VENV)/bin
# What is installed: for `make run`, for `make cosmic`, for everything, and for the site.
READY_RUN := $(VENV)/.ready-run
READY_COSMIC := $(VENV)/.ready-cosmic
READY := $(VENV)/.ready
READY_DOCS := $(VENV)/.ready-docs
READY_TENSORFLOW := $(VENV_TENSORFLOW)/.ready
WANTED := Pilotage needs Python 3.11 or newer; name one with make PYTHON=/path/to/python3

# Which share of the tests `make test-long` runs, for several machines or sessions: PART=1/3; empty runs all.
PART   ?=

# How many processes share the tests of `make test` and `make test-long`.
WORKERS ?= 2

# One thread for each process: two of them fill the smallest machine that we test on. Many tests start processes of their
# own, which read compiled modules where that is allowed.
CALM := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TORCHINDUCTOR_COMPILE_THREADS=1 MPLBACKEND=Agg
PYTEST := $(CALM) $(BIN)/python -m pytest
SHARED := --numprocesses=$(WORKERS) --dist=worksteal
QUICK := -q -m "not slow and not long" --hypothesis-profile=quick

.DEFAULT_GOAL := help
.PHONY: help setup run cosmic test check check-sources check-core check-others test-long test-torch test-tensorflow test-ecosystem bench dist docs test-docs format clean clean-all

help: ## print this list
	@printf 'Pilotage: PyTorch models as one compiled program on CPU, CUDA and Gaudi.\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nVariables: PYTHON=%s VENV=%s TORCH=%s DEVICE=%s WORKERS=%s PART=%s ARGS=%s\n' '$(PYTHON)' '$(VENV)' '$(TORCH)' '$(DEVICE)' '$(WORKERS)' '$(PART)' '$(ARGS)'

setup: $(READY) ## create .venv and install everything into it, the tools of developers too

run: $(READY_RUN) ## fetch Fashion-MNIST, train the classifier, evaluate it, leave pictures and weights behind
	@$(BIN)/python examples/fashion_mnist all $(ARGS)

cosmic: $(READY_COSMIC) ## draw liquid-argon events, train CosmicTagger on them, judge and draw held-out ones, in about two minutes
	@$(BIN)/python -m cosmictagger.demonstration

test: $(READY) ## run all tests, the exhaustive ones sampled
	@$(PYTEST) -m "not long" $(SHARED) $(ARGS)

check: $(READY) ## format, lint, types, import contracts and fast tests, in about a minute
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going check-core check-others check-sources

check-sources: $(READY) ## format, lint, types and import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

check-core: $(READY)
	@$(PYTEST) $(QUICK) tests/pilotage

check-others: $(READY)
	@$(PYTEST) $(QUICK) --ignore=tests/pilotage

test-long: $(READY) ## run every test, the exhaustive matrices and kill tests too; PART=1/3 runs a third of them
	@$(PYTEST) $(SHARED) $(if $(PART),--part $(PART)) $(ARGS)

test-torch: $(READY) ## install every release of torch in the range, and newer ones, and try each in its own environment
	@$(PYTEST) -m downloads tests/project/test_torch_versions.py $(ARGS)

test-tensorflow: $(READY_TENSORFLOW) ## test framework=tensorflow of CosmicTagger in its own environment
	@$(CALM) $(VENV_TENSORFLOW)/bin/python -m pytest tests/cosmictagger/tensorflow \
		"tests/cosmictagger/test_command_published.py::test_the_commands_of_a_page_run_in_their_order[cosmictagger-tensorflow.md]" $(ARGS)

test-ecosystem: $(READY) ## install optimum-habana into .venv-ecosystem, and train with it on the emulated Gaudi
	@'$(PYTHON)' tools/set_up_ecosystem.py $(VENV)-ecosystem
	@PILOTAGE_ECOSYSTEM=$(abspath $(VENV)-ecosystem) $(PYTEST) tests/ecosystem $(ARGS)

bench: $(READY) ## measure; DEVICE=cuda chooses where
	@$(BIN)/python -m benchmarks $(if $(DEVICE),--device $(DEVICE)) $(ARGS)

dist: $(READY) ## build wheels and sdists of both distributions into dist/, and try them in a bare environment
	@$(BIN)/python tools/distributions.py $(if $(HOME_PAGE),--home-page $(HOME_PAGE)) $(ARGS)

docs: $(READY_DOCS) ## build the site into site/; it works offline, from the disk too
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)

test-docs: $(READY_DOCS) ## build the site and test it: links, search, and every page in headless Chromium
	@$(PYTEST) tests/site $(ARGS)

format: $(READY) ## format the sources, and fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## remove caches, builds and outputs
	@rm -rf build dist site output dropins/build dropins/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . \( -path ./$(VENV) -o -path ./$(VENV_TENSORFLOW) \) -prune -o -name __pycache__ -type d -exec rm -rf {} +

clean-all: clean ## remove .venv too
	@rm -rf $(VENV) $(VENV_TENSORFLOW) $(VENV)-ecosystem

NEEDED := pyproject.toml dropins/pyproject.toml requirements-torch.txt tools/set_up.py
RUNNING := --extra examples --extra terminal
ALL := $(RUNNING) --extra cosmic --extra develop

$(READY_RUN): $(NEEDED)
	$(call set_up,$(VENV),$(RUNNING))

$(READY_COSMIC): $(NEEDED)
	$(call set_up,$(VENV),$(RUNNING) --extra cosmic)

# The full environment also serves the other targets.
$(READY): $(NEEDED)
	$(call set_up,$(VENV),$(ALL))
	@touch $(READY_RUN) $(READY_COSMIC)

$(READY_DOCS): $(READY) $(NEEDED)
	$(call set_up,$(VENV),$(ALL) --extra docs)
	@touch $(READY_RUN) $(READY_COSMIC) $(READY) $(READY_DOCS)

$(READY_TENSORFLOW): $(NEEDED)
	$(call set_up,$(VENV_TENSORFLOW),$(ALL) --extra cosmic-tensorflow)

define set_up
	@command -v '$(PYTHON)' >/dev/null || { echo "'$(PYTHON)' was not found. $(WANTED)" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "'$(PYTHON)' is too old. $(WANTED)" >&2; exit 1; }
	@'$(PYTHON)' tools/set_up.py '$(1)' --torch '$(TORCH)' $(2)
	@touch $@
endef
