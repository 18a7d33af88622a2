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

# The lock files are complete, so pip resolves no dependencies. The stamp files make a second run a no-op. uv installs in
# a second, pip in a minute; pip is the fallback where uv cannot reach the package index that pip is configured for.
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

# The tests start hundreds of Python processes; cached bytecode saves each of them the compilation.
unexport PYTHONDONTWRITEBYTECODE

# More processes than cores, because many tests wait for servers. tests/conftest.py sorts the files, longest first.
PYTEST := $(BIN)/pytest --dist loadfile --no-loadscope-reorder

test: $(READY)  ## run the quick tests, which need only Python: three minutes on two cores
	$(PYTEST) -n 3 $(TEST_OPTIONS)

test-all: $(READY)  ## run all tests, including the long ones; before a release
	$(PYTEST) -n 4 --tier=all --nothing-missing $(TEST_OPTIONS)

test-pythons: $(READY)  ## run the quick tests on every Python from 3.11 up that is installed
	TREECLAIM_PROPERTY_EXAMPLES=$${TREECLAIM_PROPERTY_EXAMPLES:-20} tools/pythons.sh -n 2 --dist loadfile $(TEST_OPTIONS)

coverage: $(READY)  ## report lines and branches that the quick tests miss; fails below a floor
	rm -f build/coverage*
	TREECLAIM_PROPERTY_EXAMPLES=$${TREECLAIM_PROPERTY_EXAMPLES:-20} $(BIN)/pytest -q -n 2 --dist loadfile --cov --cov-report=term --cov-report=html:build/coverage-html $(TEST_OPTIONS)

mutants: $(READY)  ## mutate the code and count the mutants that the tests kill: ROOM=forest/solve SAMPLE=20 SEED=1
	$(BIN)/python -m tools.mutants $(if $(ROOM),--room $(ROOM)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

steps: $(READY)  ## compare random claims with their model on each database: STEPS=100000
	TREECLAIM_STEPS=$(or $(STEPS),100000) $(BIN)/pytest -p no:xdist --tier=ci tests/properties/test_claims_match_the_model.py

lint: $(READY)  ## style, types, import rules, declared dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src

wheels: $(READY)  ## build wheels of Treeclaim and its dependencies in dist/wheels, with hashes for pip
	$(BIN)/python -m tools.release --wheels

release: $(READY)  ## build and tag the version in src/treeclaim/__init__.py; see CONTRIBUTING.md
	$(BIN)/python -m tools.release

audit: $(READY)  ## check the pinned packages for known vulnerabilities; needs the network
	$(BIN)/pip-audit --requirement requirements/runtime.txt --no-deps --disable-pip --progress-spinner off

format: $(READY)  ## fix and format the code with ruff
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(READY)  ## build the documentation site in build/site; a broken link fails
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/doctrees docs build/site
	@echo "Open build/site/index.html"

screenshots: $(READY)  ## regenerate the pictures of the pages at /ui/; needs Chromium
	$(BIN)/python -m tools.screenshots

bench: $(READY)  ## run the short benchmark, beside openstack-placement if it can be installed
	$(BIN)/python -m bench

COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock: $(READY)  ## regenerate the lock files, with hashes
	$(COMPILE) requirements/build.in --output-file requirements/build.txt
	$(COMPILE) pyproject.toml --extra service --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra service --extra dev --output-file requirements/dev.txt

generated: $(READY)  ## regenerate files that follow from declarations: docs/openapi.json and modules of the pages
	$(BIN)/python -m tools.generated

clean:  ## remove everything that make created
	rm -rf $(VENV) docs/site .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
