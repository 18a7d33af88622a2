# SPDX-License-Identifier: Apache-2.0
.DEFAULT_GOAL := help
.PHONY: help install demo demo-keep serve test lint audit format bench bench-full lock openapi clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

help:  ## show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort

# Packages come from the lock alone; the stamp makes a second run do nothing.
$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

install: $(READY)  ## create .venv with everything

demo: $(READY)  ## show the main job: load trees, ask, claim
	@$(BIN)/treeclaim demo

demo-keep: $(READY)  ## the same, and leave the service running
	@$(BIN)/treeclaim demo --keep

serve: $(READY)  ## run the service on SQLite in ./treeclaim.db, without authentication
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
	$(BIN)/python -c 'import json; from treeclaim.api.resources.service.openapi import description; from treeclaim.api.routes import OPERATIONS; print(json.dumps(description(OPERATIONS), indent=1))' > docs/openapi.json

clean:  ## remove what was made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
