# SPDX-License-Identifier: Apache-2.0
.DEFAULT_GOAL := help
.PHONY: help install demo demo-keep serve test test-all test-pythons coverage mutants lint steps audit format docs screenshots bench lock generated wheels release clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/runtime
READY := $(VENV)/ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

help:  ## show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort

# Packages come from the locks alone, which are whole: pip resolves nothing anew. The stamps make a second run do nothing.
# uv takes a second for what pip takes a minute for; where it does not reach the packages that pip reaches, pip takes them.
$(RUNTIME): requirements/runtime.txt requirements/build.txt pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || { \
	    found=$$($(PYTHON) --version 2>/dev/null) || found="not there"; \
	    echo "Treeclaim needs Python 3.11 or newer, but $(PYTHON) is $$found."; \
	    echo "Name another interpreter: make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12"; exit 1; }
	@echo "Installing the packages that the service needs into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --no-deps --require-hashes --requirement requirements/build.txt --requirement requirements/runtime.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(RUNTIME) requirements/dev.txt
	@echo "Installing the packages that tests and checks need into $(VENV) ..."
	@awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements/dev.txt >$(VENV)/uv.txt
	@$(INSTALL) --no-deps --require-hashes --requirement $(VENV)/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes --requirement requirements/dev.txt 2>$(VENV)/uv.log \
	    || $(INSTALL) --no-deps --require-hashes --requirement requirements/dev.txt
	@$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

install: $(READY)  ## create .venv with everything

demo: $(RUNTIME)  ## show the main job: load trees, ask, claim
	@$(BIN)/treeclaim demo

demo-keep: $(RUNTIME)  ## the same, and leave the service running
	@$(BIN)/treeclaim demo --keep

serve: $(RUNTIME)  ## run the service on SQLite in ./treeclaim.db, without authentication
	OS_PLACEMENT_DATABASE__CONNECTION=sqlite:///treeclaim.db \
	OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP=true \
	OS_API__AUTH_STRATEGY=noauth2 \
	$(BIN)/treeclaim serve

# Tests start Python again and again: what it has compiled is kept, wherever the environment forbids it.
unexport PYTHONDONTWRITEBYTECODE

# More processes than cores: many tests wait for servers. Files come in the order of tests/conftest.py,
# the longest first.
PYTEST := $(BIN)/pytest --dist loadfile --no-loadscope-reorder

test: $(READY)  ## run the quick tests, which need Python alone, in less than three minutes on two cores
	$(PYTEST) -n 3 $(TEST_OPTIONS)

test-all: $(READY)  ## run all tests, those too that take longer than .ci/run may; before a release
	$(PYTEST) -n 4 --tier=all --nothing-missing $(TEST_OPTIONS)

test-pythons: $(READY)  ## run the quick tests on every Python from 3.11 up that is installed
	TREECLAIM_PROPERTY_EXAMPLES=$${TREECLAIM_PROPERTY_EXAMPLES:-20} tools/pythons.sh -n 2 --dist loadfile $(TEST_OPTIONS)

coverage: $(READY)  ## run the quick tests, and say which lines and branches none of them reaches; a floor holds
	rm -f build/coverage*
	TREECLAIM_PROPERTY_EXAMPLES=$${TREECLAIM_PROPERTY_EXAMPLES:-20} $(BIN)/pytest -q -n 2 --dist loadfile --cov --cov-report=term --cov-report=html:build/coverage-html $(TEST_OPTIONS)

mutants: $(READY)  ## change the code in small ways, and count what the tests notice: ROOM=forest/solve SAMPLE=20 SEED=1
	$(BIN)/python -m tools.mutants $(if $(ROOM),--room $(ROOM)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

steps: $(READY)  ## random claims against their model, so many on each database: STEPS=100000
	TREECLAIM_STEPS=$(or $(STEPS),100000) $(BIN)/pytest -p no:xdist --tier=ci tests/properties/test_claims_match_the_model.py

lint: $(READY)  ## style, types, import rules, declared dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src

wheels: $(READY)  ## build wheels of Treeclaim and all that it needs in dist/wheels, with a list of hashes for pip
	$(BIN)/python -m tools.release --wheels

release: $(READY)  ## build and tag the version of src/treeclaim/__init__.py; CONTRIBUTING says what comes before
	$(BIN)/python -m tools.release

audit: $(READY)  ## look for known vulnerabilities of the pinned packages; needs the network
	$(BIN)/pip-audit --requirement requirements/runtime.txt --no-deps --disable-pip --progress-spinner off

format: $(READY)  ## put the code into the common format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(READY)  ## build the documentation site in build/site; a broken link fails
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/doctrees docs build/site
	@echo "Open build/site/index.html"

screenshots: $(READY)  ## take the pictures of the pages at /ui/ anew; needs Chromium
	$(BIN)/python -m tools.screenshots

bench: $(READY)  ## a short, honest benchmark, against openstack-placement where it can be installed
	$(BIN)/python -m bench

COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock: $(READY)  ## pin all packages anew, with their hashes
	$(COMPILE) requirements/build.in --output-file requirements/build.txt
	$(COMPILE) pyproject.toml --extra service --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra service --extra dev --output-file requirements/dev.txt

generated: $(READY)  ## write anew what follows from declarations: docs/openapi.json, parameters and parts of the pages
	$(BIN)/python -m tools.generated

clean:  ## remove what was made
	rm -rf $(VENV) docs/site .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
