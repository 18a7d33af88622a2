# SPDX-License-Identifier: Apache-2.0
"""Checks of responses that gabbi has no words for.

`response_promises: {kept: true}`
    The default of every request: the answer keeps all of `promises.py`.
    A suite about answers outside the API has `{kept: false}`.
`response_error: {detail: ..., code: ..., no_code: true}`
    The JSON error document: `detail` (one phrase or a list) is contained in
    its detail, its code is `code`. Where no code is named, the code is
    `placement.undefined_code`, from the microversion that has codes at all.
`response_absent: [path, ...]`
    JSON paths that match nothing in the body.
"""

from __future__ import annotations

import json
import urllib.parse
from functools import cache
from http import HTTPStatus
from typing import Any

import jsonpath_ng.ext
import jsonschema_rs
from gabbi.handlers import base

from tests.conformance import promises
from treeclaim.api.description.openapi import build_description
from treeclaim.api.protocol.operations import Operation
from treeclaim.api.routes import OPERATIONS, find_route
from treeclaim.model.microversions import MAXIMUM, NEWEST

UNDEFINED = "placement.undefined_code"
_JSON = "application/json"

_DOCUMENT: Any = build_description(OPERATIONS)
_DESCRIBED_AT = (NEWEST.header, MAXIMUM.header)
"""Versions of the operations that the description is true of; an operation of the extension exists at the first."""


def find_faults(answer: promises.Answer, sent: Any) -> list[str]:
    """Return the violations of the API description by an answer and by its request body."""
    route = find_route(answer.path)
    if route is None or answer.method not in route.operations:
        return []
    operation = route.operations[answer.method]
    if answer.asked_version not in _DESCRIBED_AT[: 1 if operation.needs_opt_in else 2]:
        return []
    described = _DOCUMENT["paths"][operation.path][answer.method.lower()]
    if str(answer.status) not in described["responses"]:
        return [f"the status {answer.status} is not described"]
    faults = []
    if answer.status < HTTPStatus.BAD_REQUEST and "requestBody" in described:
        faults += _compare(operation, "request", sent)
    if answer.text and answer.headers.get("content-type") == _JSON:
        faults += _compare(operation, str(answer.status), answer.document)
    return faults


def _compare(operation: Operation, part: str, document: Any) -> list[str]:
    errors = _validator(operation, part).iter_errors(document)
    return [f"{operation.name}, {part}: {error}" for error in errors]


@cache
def _validator(operation: Operation, part: str) -> Any:
    described = _DOCUMENT["paths"][operation.path][operation.method.lower()]
    body = described["requestBody"] if part == "request" else described["responses"][part]
    schema = body.get("content", {}).get(_JSON, {}).get("schema", False)
    components = {"components": _DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator({"allOf": [schema], **components})


def answer_of(test: Any) -> promises.Answer:
    """Read a gabbi test that has run as an answer."""
    sent = {name.lower(): str(value) for name, value in test.test_data["request_headers"].items()}
    path = urllib.parse.urlsplit(test.url).path
    return promises.Answer(
        method=test.test_data["method"].upper(),
        path=path,
        asked_version=sent.get("openstack-api-version", ""),
        status=int(test.response["status"]),
        headers=test.response,
        text=_text(test.output),
        document=test.response_data,
        origin=f"{test.scheme}://{sent.get('host', test.netloc)}",
    )


def _text(output: str | bytes) -> str:
    """The body as text; gabbi leaves a body without content type as bytes."""
    return output.decode() if isinstance(output, bytes) else output


def _sent_document(test: Any) -> Any:
    """Return the body that a test sent, if it is JSON."""
    data = test.test_data["data"]
    if not isinstance(data, str):
        return data
    document = test.replace_template(data)
    try:
        return json.loads(document) if isinstance(document, str) else document
    except ValueError:
        return None


class PromisesHandler(base.ResponseHandler):
    """Every answer keeps the promises that do not depend on the question."""

    test_key_suffix = "promises"
    test_key_value: Any = {"kept": True}  # noqa: RUF012 - so gabbi has it

    def action(self, test: Any, item: str, value: Any = None) -> None:
        """Fail the test with each promise that is broken."""
        if item != "kept":
            test.fail(f"unknown promise {item!r}")
        if value:
            answer = answer_of(test)
            try:
                promises.require_kept(answer)
            except AssertionError as error:
                raise AssertionError(answer) from error
            test.assertEqual([], find_faults(answer, _sent_document(test)), answer)


class ErrorHandler(base.ResponseHandler):
    """The error document of a refused request."""

    test_key_suffix = "error"
    test_key_value: Any = {}  # noqa: RUF012 - so gabbi has it

    def preprocess(self, test: Any) -> None:
        """Expect the undefined code where a test names none."""
        expected = test.test_data["response_error"]
        answer = answer_of(test)
        if "code" not in expected and (answer.minor or 0) >= promises.CODES_SINCE:
            self._compare_code(test, UNDEFINED)

    def action(self, test: Any, item: str, value: Any = None) -> None:
        """Compare the code, or look for phrases in the detail."""
        if item == "code":
            self._compare_code(test, value)
        elif item == "detail":
            detail = test.response_data["errors"][0]["detail"]
            for phrase in [value] if isinstance(value, str) else value:
                test.assertIn(test.replace_template(phrase), detail)
        else:
            test.fail(f"response_error knows no {item!r}")

    def _compare_code(self, test: Any, code: str) -> None:
        error = test.response_data["errors"][0]
        test.assertEqual(code, error.get("code"), f"the error: {error}")


class AbsentHandler(base.ResponseHandler):
    """Members that a body must not have."""

    test_key_suffix = "absent"
    test_key_value: Any = []  # noqa: RUF012 - so gabbi has it

    def action(self, test: Any, item: str, value: Any = None) -> None:
        """Fail the test if a path leads to anything."""
        result = jsonpath_ng.ext.parse(item).find(test.response_data)
        test.assertEqual([], [match.value for match in result], f"{item} in {test.output}")
