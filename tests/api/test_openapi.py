# SPDX-License-Identifier: Apache-2.0
"""The API description is true: nothing that fits it gets a 500 or an answer outside of it."""

import json
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service import HEADERS, make_application
from treeclaim.api.resources.service.openapi import description
from treeclaim.api.routes import OPERATIONS

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
_started = []


def _application():
    """The service that is asked; started when the first request is sent."""
    if not _started:
        import tempfile

        _started.append(make_application(tempfile.mkdtemp(prefix="treeclaim-schema-")))
    return _started[0]


def _call(environment, start_response):
    return _application()(environment, start_response)


schema = schemathesis.openapi.from_dict(description(OPERATIONS))
schema.app = _call


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case):
    case.call_and_validate(headers=HEADERS | {"x-roles": "admin,service"}, checks=CHECKS)


def test_the_description_in_the_docs_is_the_present_one():
    page = Path(__file__).parents[2] / "docs" / "openapi.json"
    assert json.loads(page.read_text()) == json.loads(json.dumps(description(OPERATIONS))), (
        "write it anew with `make openapi`"
    )


def test_every_operation_is_described(fresh_service):
    document = fresh_service().get("/openapi.json", headers={"x-auth-token": "nobody"}).json()
    for operation in OPERATIONS:
        assert operation.method.lower() in document["paths"][operation.path]


def test_the_description_needs_no_token(fresh_service):
    client = fresh_service()
    del client.headers["x-auth-token"]
    assert client.get("/openapi.json").status_code == 200
