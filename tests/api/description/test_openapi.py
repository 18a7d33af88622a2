# SPDX-License-Identifier: Apache-2.0
"""The API description is true: the service accepts valid requests and refuses invalid ones.

The requests, valid and invalid, are generated from the description.
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    missing_required_header,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.paths import ROOT
from tests.service import HEADERS, client_of, make_application
from tools import generated
from treeclaim.api.description.openapi import build_description
from treeclaim.api.protocol.request.schemas import QUERY
from treeclaim.api.routes import OPERATIONS

PROVIDER = "6f3b1a52-7a7d-4f0e-9a55-0c1c2f7f8a10"
"""A provider that exists, so that requests about providers get as far as their bodies."""

REFUSALS = {400, 401, 404, 405, 406, 415}
"""Statuses for invalid requests. A 403 or 409 would hide that validation accepted the request."""

REFUSALS_OF_FORM = ("JSON does not validate", "Malformed JSON", "Invalid query string parameters")
"""The beginning of a 400 about the form of a request, which the description must define. Any other is about names
that do not exist, and about values against each other."""

UNTOLD = ("cannot be used like this",)
"""A refusal that begins like those of form: parameters against each other."""


def refused_unless_it_fits(_context, response, case):
    """Requests that do not fit the description are refused."""
    if _negated(case):
        assert response.status_code in REFUSALS, f"let through: {case.meta.phase.data}"


def _negated(case):
    """Return the places of a request that violate the description.

    Additional headers do not count, nor additions to the query of an operation that ignores queries. A parameter
    without a value is not sent.
    """
    negated = {
        place for place, component in case.meta.components.items() if component.mode.is_negative
    }
    if not _omitted(case) and not (case.operation.body and _is_of_content_type(case)):
        negated.discard(ParameterLocation.HEADER)
    is_all_sent = all(value not in (None, []) for value in (case.query or {}).values())
    if not list(case.operation.query) or not is_all_sent:
        negated.discard(ParameterLocation.QUERY)
    return negated


def _is_of_content_type(case):
    return getattr(case.meta.phase.data, "parameter", None) == "Content-Type"


def _omitted(case):
    """Return the headers that a request should have and has not, on purpose."""
    if not case.meta.is_negative_at(ParameterLocation.HEADER):
        return set()
    definition = case.operation.definition.raw
    wanted = {"x-auth-token"} if "security" in definition else set()
    wanted |= {
        parameter["name"].lower()
        for parameter in definition["parameters"]
        if parameter["in"] == "header" and parameter["required"]
    }
    return wanted - {name.lower() for name in case.headers}


def let_through_if_it_fits(_context, response, case):
    """Requests that fit the description are refused only for reasons that no description can state."""
    if case.meta.generation.mode.is_negative:
        return
    assert response.status_code not in {401, 403, 405, 406, 413, 415}, response.text
    if response.status_code == 400:
        detail = response.json()["errors"][0]["detail"]
        is_told = any(words in detail for words in UNTOLD)
        assert is_told or not detail.startswith(REFUSALS_OF_FORM), detail


def no_body_but_the_described_one(_context, response, case):
    """An answer that is described without a body has none, nor a media type."""
    described = case.operation.responses.find_by_status_code(response.status_code)
    if described is None or "content" in described.definition:
        return
    assert response.content == b""
    assert "content-type" not in response.headers


CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    status_code_conformance,
    missing_required_header,
    unsupported_method,
    refused_unless_it_fits,
    let_through_if_it_fits,
    no_body_but_the_described_one,
]


@cache
def _application():
    """The service under test; the first request starts it."""
    application = make_application(tempfile.mkdtemp(prefix="treeclaim-schema-"))
    with client_of(application) as client:
        provider = {"name": "described", "uuid": PROVIDER}
        client.post("/resource_providers", json=provider).raise_for_status()
    return application


def _call(environment, start_response):
    return _application()(environment, start_response)


schemathesis.openapi.format(
    QUERY["format"], st.from_regex(r"resources=[A-Z0-9_]{1,64}:[1-9][0-9]{0,8}", fullmatch=True)
)

# Requests at the edges of each schema are generated during collection, which takes ten seconds in each process of a run.
# Therefore one process generates all requests.
AT_THE_EDGES = "TREECLAIM_TESTS_AT_THE_EDGES"

schema = schemathesis.openapi.from_dict(json.loads(json.dumps(build_description(OPERATIONS))))
schema.app = _call
schema.config.phases.coverage.enabled = AT_THE_EDGES in os.environ
schema.config.phases.examples.enabled = AT_THE_EDGES not in os.environ
schema.config.phases.fuzzing.enabled = AT_THE_EDGES not in os.environ
# Without the header of the extension its paths do not exist.
schema.config.checks.missing_required_header.expected_statuses = ["400", "401", "404", "406"]


@schema.parametrize()
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_service_behaves_as_described(case):
    _let_it_get_far(case)
    response = case.call(headers=_headers(case))
    case.validate_response(response, checks=CHECKS)


@pytest.mark.long
def test_service_behaves_as_described_at_schema_boundaries():
    name = test_service_behaves_as_described.__name__
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{name}"],
        cwd=ROOT,
        env=os.environ | {AT_THE_EDGES: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert f"{len(OPERATIONS)} passed" in result.stdout, result.stdout


def _headers(case):
    """Return a request as a client of this version sends it, without the deliberately omitted parts."""
    examples = case.operation.definition.raw["parameters"][0]["examples"].values()
    version = next(iter(examples))["value"]
    headers = HEADERS | {"x-roles": "admin,service", "openstack-api-version": version}
    return {name: value for name, value in headers.items() if name not in _omitted(case)}


def _let_it_get_far(case):
    """Point a request at an existing provider and its present generation."""
    if "resource_providers/{uuid}" not in case.path or case.meta.is_negative_at(
        ParameterLocation.PATH
    ):
        return
    if case.path.endswith("{uuid}") and case.method == "DELETE":
        return
    case.path_parameters["uuid"] = PROVIDER
    if case.meta.generation.mode.is_positive and "resource_provider_generation" in (
        case.body if isinstance(case.body, dict) else {}
    ):
        with client_of(_application()) as client:
            shown = client.get(f"/resource_providers/{PROVIDER}").json()
        case.body["resource_provider_generation"] = shown["generation"]


def test_committed_description_is_current():
    assert generated.OPENAPI.read_text() == generated.openapi(), (
        "write it anew with `make generated`"
    )
