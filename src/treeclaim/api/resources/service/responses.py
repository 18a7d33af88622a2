# SPDX-License-Identifier: Apache-2.0
"""What the API description says of an operation's answers: statuses, headers and bodies."""

import re
from http import HTTPStatus
from typing import Any

from treeclaim.api import answers
from treeclaim.api.protocol.microversions import MAXIMUM
from treeclaim.api.protocol.operations import Operation
from treeclaim.api.protocol.wording import Schema

_TEXT: Schema = {"type": "string"}

_LOCATED = {"create_provider", "add_inventory", "ensure_trait", "create_class", "put_class"}
"""Handlers that say where what they made is (contract page 00, section 9)."""

_UNDATED = {"create_class", "put_class", "show_description"} | {
    "replace_allocations",
    "manage_allocations",
    "reshape",
}
"""Handlers other than deletions that send no Last-Modified (contract page 00, section 8)."""

_MEANINGS = {
    HTTPStatus.BAD_REQUEST: "Path, query, header or body have not the form that is described, or "
    "name what does not exist. A parameter that is not described is refused by operations that "
    "have parameters.",
    HTTPStatus.UNAUTHORIZED: "There is no valid token in the header X-Auth-Token.",
    HTTPStatus.FORBIDDEN: "The policy does not allow it.",
    HTTPStatus.NOT_FOUND: "What the path names does not exist, or does not exist at the "
    "microversion that was asked for.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The method does not exist at the microversion asked for.",
    HTTPStatus.NOT_ACCEPTABLE: "The microversion that was asked for is not served, or the header "
    "Accept admits no JSON.",
    HTTPStatus.CONFLICT: "It contradicts what is stored, or what others change at the same time.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too long.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not declared as application/json.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "An unexpected failure.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The database is away, or too much is asked at once. The "
    "header Retry-After, if there is one, has the seconds after which to try again.",
}

_HEADERS: dict[str, Any] = {
    "x-openstack-request-id": {
        "required": True,
        "schema": {"type": "string", "pattern": "^req-[a-fA-F0-9-]+$"},
    }
}


def responses(operation: Operation) -> dict[str, Any]:
    """Return all answers of an operation, by status."""
    handler = operation.handler.__name__
    described = {
        str(int(status)): _success(operation, status) for status in answers.SUCCESSES[handler]
    }
    described |= {str(int(status)): _error(status) for status in _errors(operation)}
    return dict(sorted(described.items()))


def _success(operation: Operation, status: HTTPStatus) -> dict[str, Any]:
    handler = operation.handler.__name__
    headers = _HEADERS | {"OpenStack-API-Version": _header(_version(operation))}
    if handler in _LOCATED:
        headers["Location"] = _header({"type": "string", "pattern": "^https?://[^/]+/"})
    if operation.method != "DELETE" and handler not in _UNDATED:
        headers["Last-Modified"] = _header({"type": "string", "pattern": " GMT$"})
        headers["Cache-Control"] = _header({"const": "no-cache"})
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase, "headers": headers}
    schema = answers.BODIES.get((handler, status))
    if schema is not None:
        described["content"] = {"application/json": {"schema": schema}}
    return described


def _header(schema: Schema) -> dict[str, Any]:
    return {"required": True, "schema": schema}


def _version(operation: Operation) -> Schema:
    """Return the form of the header that says which microversion was used."""
    if operation.extension is not None:
        return {"type": "string", "pattern": f"^placement {re.escape(str(MAXIMUM))}, treeclaim "}
    return {"type": "string", "pattern": f"^placement {re.escape(str(MAXIMUM))}"}


def _errors(operation: Operation) -> set[HTTPStatus]:
    """Return the statuses of errors that an operation has (contract page 00, section 2)."""
    found = {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_ACCEPTABLE,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.SERVICE_UNAVAILABLE,
    }
    if operation.policy is not None:
        found |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
    if "{" in operation.path or operation.since or operation.extension is not None:
        found.add(HTTPStatus.NOT_FOUND)
    if operation.since and operation.missing is HTTPStatus.METHOD_NOT_ALLOWED:
        found.add(HTTPStatus.METHOD_NOT_ALLOWED)
    if operation.method != "GET":
        found.add(HTTPStatus.CONFLICT)
    if operation.body is not None:
        found.add(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return found


def _error(status: HTTPStatus) -> dict[str, Any]:
    error = {"$ref": "#/components/schemas/Error"}
    content: dict[str, Any] = {"application/json": {"schema": error}}
    if status is not HTTPStatus.UNAUTHORIZED:
        # By the header Accept; what refuses a token knows nothing of it.
        content |= {"text/html": {"schema": _TEXT}, "text/plain": {"schema": _TEXT}}
    return {"description": _MEANINGS[status], "headers": _HEADERS, "content": content}
