# attnlab: `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
INSTALLED := $(VENV)/.installed

export PATH := $(BIN):$(PATH)
# Dependencies that would call home.
export DO_NOT_TRACK := 1
export DVC_NO_ANALYTICS := 1
export HF_HUB_DISABLE_TELEMETRY := 1
export MLFLOW_DISABLE_TELEMETRY := true
# Its banner.
export NO_MKDOCS_2_WARNING := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo lesson lesson-models atlas oracles settings docs docs-serve test test-all test-older-cpu test-chains test-cluster test-faults check coverage mutate audit dist course course-pages clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(INSTALLED) ## make the environment .venv, where it is missing or out of date

# The environment is what requirements.lock says, and attnlab itself in place.
$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "attnlab needs Python 3.11 or newer; name one by: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null || true  # as pip does, but on all processors; templates are no Python
	@touch $@

# DVC wants git; an unpacked archive has none.
.dvc/config.local: $(INSTALLED)
	@test -e .git || dvc config --local core.no_scm true
	@touch $@

demo: $(INSTALLED) .dvc/config.local ## run the whole chain on the embedded data: dvc repro
	@dvc repro
	@$(BIN)/python pipelines/show.py

lesson: $(INSTALLED) ## train the small models of the course, and open a page on which to question them
	@$(BIN)/attnlab lesson

settings: $(INSTALLED) ## write docs/settings.md and docs/settings.schema.json anew
	$(BIN)/python docs/make_settings.py

atlas: $(INSTALLED) ## train the star of docs/atlas.md, as far as it has no rows yet, and write its tables (ATLAS="--minutes 30 --corpora FOLDER")
	$(BIN)/python docs/make_atlas.py $(ATLAS)

oracles: $(INSTALLED) ## measure how far the code is from the formulas of its tests, and write the table of docs/oracles.md
	$(BIN)/python docs/make_oracles.py

lesson-models: $(INSTALLED) ## train the small models of the course with three seeds each, and write the table of docs/lesson_models.md
	@$(BIN)/python docs/make_lesson_models.py

course: $(INSTALLED) ## run every experiment of the course in full, and print the minutes of each lesson (COURSE="--steps 2 02": of lesson 2, briefly)
	@$(BIN)/python docs/run_course.py $(COURSE)

course-pages: $(INSTALLED) ## train the models that the lessons show, and write their live pages to docs/course/live/
	@$(BIN)/python docs/make_live_pages.py

docs: $(INSTALLED) ## build the docs site into site/, to be opened as files, without a network
	$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

docs-serve: $(INSTALLED) ## show the docs site at http://127.0.0.1:8000, and build it anew after each change
	$(BIN)/mkdocs serve

TESTED := $(BIN)/python -m pytest -n 2 --dist worksteal
# Slow tests wait for servers and processes: a third one uses the time.
SLOW := $(BIN)/python -m pytest -n 3 --dist worksteal

test: $(INSTALLED) .dvc/config.local ## run the test suite
	$(TESTED) -m "not slow and not cluster" --ignore=tests/faults

test-all: $(INSTALLED) .dvc/config.local ## all that test, test-chains and test-faults run, in the shortest time
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not cluster" tests

test-ci: $(INSTALLED) .dvc/config.local ## all tests but those that take minutes each, as CI runs them
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not long and not cluster" tests

test-older-cpu: $(INSTALLED) ## the tests that depend on the processor, as if it had AVX2 only
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 $(TESTED) -m "processor and not slow" tests/model tests/training tests/search tests/pipelines

test-chains: $(INSTALLED) .dvc/config.local ## the slow tests: DVC, sweeps and servers as a user starts them
	$(SLOW) -m slow --ignore=tests/faults

# One after the other: a cluster's jobs are as many as the machine can bear. -s shows the counts.
test-cluster: $(INSTALLED) ## sweeps and trainings on a Slurm cluster of two nodes that it starts; as root, with Debian's packages
	ATTNLAB_CLUSTER_MUST_START=1 $(BIN)/python -m pytest -s -m "cluster or slow" tests/cluster

test-faults: $(INSTALLED) .dvc/config.local ## kills, lost servers, full disks, bad inputs (ATTNLAB_FAULTS=25: so many kills and losses of each kind)
	$(SLOW) tests/faults

check: $(INSTALLED) ## lint, formatting, types and names of test files
	@twice=$$(find tests -name 'test_*.py' | sed 's|.*/||' | sort | uniq -d); \
	  test -z "$$twice" || { echo "pytest cannot tell two files of one name apart:" $$twice >&2; exit 1; }
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

coverage: $(INSTALLED) .dvc/config.local ## the test suite once more, and the branches of src/ that it leaves out
	$(TESTED) -m "not slow and not cluster" --ignore=tests/faults --cov --cov-report=term --cov-report=html:build/coverage --cov-report=json:build/coverage.json
	@$(BIN)/python -c 'import json; print("branches: {percent_branches_covered:.1f} %".format(**json.load(open("build/coverage.json"))["totals"]))'

mutate: $(INSTALLED) ## change the code in one place at a time, and check that a test fails (slow; MUTANTS="attnlab.search.*")
	$(BIN)/mutmut run --max-children 2 $(if $(MUTANTS),"$(MUTANTS)")

# In an environment of its own, so that the tool is not among the packages that it checks. --no-deps: the lock is full.
audit: ## known weaknesses of the pinned dependencies; needs the network
	@mkdir -p build
	@test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet "pip-audit>=2.7,<3"; } \
	  || { rm -rf build/audit; echo "audit: pip-audit could not be installed; nothing was checked" >&2; exit 2; }
	@build/audit/bin/pip-audit --requirement requirements.lock --no-deps --disable-pip --strict --progress-spinner off \
	  || { echo "audit: failed; either the table above names weaknesses, or the advisory service did not answer and nothing was checked" >&2; exit 1; }

# The environment is truly empty, and goes when the wheel was tried. `make dist PYTHON=python3.12` tries another Python.
dist: $(INSTALLED) ## build the wheel and the source archive into dist/, and try the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m hatchling build
	@place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && set -ex \
	  && $(PYTHON) -m venv "$$place" \
	  && "$$place/bin/pip" install --quiet --no-compile --constraint requirements.lock dist/attnlab-*.whl \
	  && ATTNLAB_INSTALLED="$$place/bin" $(BIN)/python -m pytest tests/test_wheel.py

clean: ## remove what the chain built, but neither runs/ nor .venv
	rm -rf build dist mutants site .pytest_cache .mypy_cache .ruff_cache
