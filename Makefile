# SPDX-License-Identifier: Apache-2.0
.DEFAULT_GOAL := help
.PHONY: help install demo demo-keep serve test lint audit format bench bench-full lock openapi man clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/runs
READY := $(VENV)/ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

help:  ## show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort

# Packages come from the locks alone; the stamps make a second run do nothing. What runs the service
# needs a third of what tests and linters need.
$(RUNS): requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Treeclaim needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --requirement requirements/runtime.txt $$(grep '^setuptools==' requirements/dev.txt)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(RUNS)

$(READY): $(RUNS) requirements/dev.txt
	$(PIP) --requirement requirements/dev.txt
	@touch $(READY)

install: $(READY)  ## create .venv with everything

demo: $(RUNS)  ## show the main job: load trees, ask, claim
	@$(BIN)/treeclaim demo

demo-keep: $(RUNS)  ## the same, and leave the service running
	@$(BIN)/treeclaim demo --keep

serve: $(RUNS)  ## run the service on SQLite in ./treeclaim.db, without authentication
	OS_PLACEMENT_DATABASE__CONNECTION=sqlite:///treeclaim.db \
	OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP=true \
	OS_API__AUTH_STRATEGY=noauth2 \
	$(BIN)/treeclaim serve

test: $(READY)  ## run the tests on SQLite, without the slow ones; .ci/run runs all
	$(BIN)/pytest -n 2 --dist loadfile $(TEST_OPTIONS)

lint: $(READY)  ## style, types, import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: $(READY)  ## look for known vulnerabilities of the pinned packages; needs the network
	$(BIN)/pip-audit --requirement requirements/runtime.txt --no-deps --disable-pip --progress-spinner off

format: $(READY)  ## put the code into the common format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY)  ## a short, honest benchmark, against openstack-placement where it can be installed
	$(BIN)/python -m bench

bench-full: $(READY)  ## the whole benchmark, about half an hour; its table and plots go to docs/benchmarks
	$(BIN)/python -m bench --full --json docs/benchmarks/full.json --markdown docs/benchmarks/full.md --plots docs/benchmarks

lock: $(READY)  ## pin all packages anew
	$(BIN)/pip-compile --quiet --upgrade --strip-extras --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --output-file requirements/runtime.txt pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --strip-extras --allow-unsafe --extra dev --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --output-file requirements/dev.txt pyproject.toml

openapi: $(READY)  ## write docs/openapi.json anew
	$(BIN)/python -c 'import json; from treeclaim.api.resources.service.openapi import description; print(json.dumps(description(), indent=1))' > docs/openapi.json

man: $(RUNS)  ## write man pages of all commands to build/man
	$(BIN)/python -m treeclaim.cli.manual build/man

clean:  ## remove what was made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
