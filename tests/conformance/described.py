# SPDX-License-Identifier: Apache-2.0
"""Checks requests and responses at the newest versions against the API description."""

from functools import cache
from http import HTTPStatus
from typing import Any

import jsonschema_rs

from treeclaim.api.description.openapi import description
from treeclaim.api.protocol.operations import Operation
from treeclaim.api.routes import OPERATIONS, find
from treeclaim.model.microversions import MAXIMUM, NEWEST

_DOCUMENT: Any = description(OPERATIONS)
_JSON = "application/json"
_DESCRIBED_AT = (NEWEST.header, MAXIMUM.header)
"""Versions of the operations that the description is true of; an operation of the extension exists at the first."""


def find_faults(
    method: str, path: str, version: str, *, sent: Any, status: int, received: Any
) -> list[str]:
    """Return what a request that succeeded, and its response, have that the description excludes.

    Args:
        method, path: Method and path of the request.
        version: Its header OpenStack-API-Version.
        sent: Its parsed body; None without one.
        status: Status of the response.
        received: The parsed body of the response; None without one.
    """
    route = find(path)
    if route is None or method not in route.operations:
        return []
    operation = route.operations[method]
    if version not in _DESCRIBED_AT[: 1 if operation.needs_opt_in else 2]:
        return []
    described = _DOCUMENT["paths"][operation.path][method.lower()]
    if str(status) not in described["responses"]:
        return [f"the status {status} is not described"]
    faults = []
    if status < HTTPStatus.BAD_REQUEST and "requestBody" in described:
        faults += _compare(operation, "request", sent)
    if received is not None:
        faults += _compare(operation, str(status), received)
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
