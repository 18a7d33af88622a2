# SPDX-License-Identifier: Apache-2.0
"""Describes the inputs and responses of an operation: schemas, statuses, headers and bodies."""

import re
from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.negotiation import EVENT_STREAM, JSON
from treeclaim.api.protocol.operations import DescribedResponse, Operation
from treeclaim.api.protocol.request.schemas import (
    ANY_UUID,
    INTEGER,
    STRING,
    Schema,
    record,
    text,
    to_schema,
    transform,
)
from treeclaim.model.microversions import MAXIMUM

_MEANINGS = {
    HTTPStatus.BAD_REQUEST: "The path, query, a header or the body is invalid, or names an entity "
    "that does not exist. Operations with parameters reject unknown parameters.",
    HTTPStatus.UNAUTHORIZED: "The header X-Auth-Token has no valid token.",
    HTTPStatus.FORBIDDEN: "The policy forbids the operation.",
    HTTPStatus.NOT_FOUND: "The entity of the path does not exist, or the operation does not exist "
    "at the requested microversion.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The method does not exist at the requested microversion.",
    HTTPStatus.NOT_ACCEPTABLE: "The requested microversion is not supported, or the header Accept "
    "does not accept JSON.",
    HTTPStatus.CONFLICT: "The request conflicts with the stored state, or with a concurrent change.",
    HTTPStatus.GONE: "The changes since the cursor are no longer stored; list the providers again.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too long.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The media type of the body is not application/json.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "An unexpected failure.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The database is unavailable, or the service is overloaded. "
    "The header Retry-After, if present, is the number of seconds to wait before a retry.",
}

_HEADERS: dict[str, Any] = {
    "x-openstack-request-id": {
        "required": True,
        "schema": {"type": "string", "pattern": "^req-[a-fA-F0-9-]+$"},
    }
}

_EVENT_STREAM_HELP = (
    ". With `Accept: text/event-stream` the response is a stream of server-sent events. The `data` of an event is "
    "such a document, and its `id` is the cursor, which a client sends in `Last-Event-ID` when it reconnects."
)

_MOST_ERRORS = 100
"""Most errors in one response (contract page 99, section 8); most operations report one."""

_EXTENSION_MEMBERS: dict[str, Schema] = {
    "conflict": {"type": "object", "required": ["kind"], "properties": {"kind": STRING}},
    "consumers": {"type": "array", "items": STRING},
    "unplaced": {"type": "array", "items": STRING},
    "explanation": {"type": "object"},
}
"""Members of errors in the extension (contract page 98, section 6)."""

ERROR: Schema = record(
    {
        "errors": {
            "type": "array",
            "minItems": 1,
            "maxItems": _MOST_ERRORS,
            "items": record(
                {"status": INTEGER, "title": STRING, "detail": STRING, "request_id": STRING},
                {"code": STRING, "min_version": STRING, "max_version": STRING}
                | _EXTENSION_MEMBERS,
            ),
        }
    }
)
"""The body of an error response (contract page 00, section 6)."""

KEYSTONE_ERROR = record({"error": record({"code": INTEGER, "title": STRING, "message": STRING})})
"""The body of keystonemiddleware's 401 (contract page 05, section 1.2)."""

SEGMENT: Schema = text("[^/]+")
"""A segment of a path (contract page 00, section 1)."""

_ANY_KEY = ".*"

_SUFFIX_HELP = (
    "With a suffix, as in `{name}_COMPUTE`, it belongs to the request group of this suffix: up to "
    "64 letters, digits, dashes and underscores."
)
"""The description of a parameter of a request group."""


_POSITIVE_INTEGER = "^[1-9][0-9]*$"
"""The pattern of integers in a query."""


def describe_responses(operation: Operation) -> dict[str, Any]:
    """Describe all responses of an operation, by status."""
    response_by_status = {
        str(int(response.status)): _describe_success(operation, response)
        for response in operation.responses
    }
    response_by_status |= {
        str(int(status)): _describe_error(status) for status in _list_error_statuses(operation)
    }
    return dict(sorted(response_by_status.items()))


def _describe_success(operation: Operation, response: DescribedResponse) -> dict[str, Any]:
    headers = _HEADERS | {
        "OpenStack-API-Version": _describe_header(_make_version_schema(operation))
    }
    if response.has_location:
        headers["Location"] = _describe_header({"type": "string", "pattern": "^https?://[^/]+/"})
    if response.has_cache_headers:
        headers["Last-Modified"] = _describe_header({"type": "string", "pattern": " GMT$"})
        headers["Cache-Control"] = _describe_header({"const": "no-cache"})
    description: dict[str, Any] = {"description": response.status.phrase, "headers": headers}
    if response.shows is not None:
        schema = transform(to_schema(response.shows), _without_pattern_properties)
        description["content"] = {JSON: {"schema": schema}}
        if EVENT_STREAM in operation.offers:
            description["content"][EVENT_STREAM] = {"schema": STRING}
            description["description"] += _EVENT_STREAM_HELP
    return description


def _describe_header(schema: Schema) -> dict[str, Any]:
    return {"required": True, "schema": schema}


def _make_version_schema(operation: Operation) -> Schema:
    if operation.needs_opt_in:
        return {"type": "string", "pattern": f"^placement {re.escape(str(MAXIMUM))}, treeclaim "}
    return {"type": "string", "pattern": f"^placement {re.escape(str(MAXIMUM))}"}


_COMMON_STATUSES = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Error statuses of every operation (contract page 00, section 2)."""


def _list_error_statuses(operation: Operation) -> set[HTTPStatus]:
    is_new = operation.since is not None
    conditions = {
        HTTPStatus.UNAUTHORIZED: operation.policy is not None,
        HTTPStatus.FORBIDDEN: operation.policy is not None,
        HTTPStatus.NOT_FOUND: "{" in operation.path or is_new or operation.needs_opt_in,
        HTTPStatus.METHOD_NOT_ALLOWED: is_new
        and operation.missing_status is HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.CONFLICT: operation.method != "GET",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE: operation.body is not None,
    }
    return {
        *operation.errors,
        *_COMMON_STATUSES,
        *(s for s, applies in conditions.items() if applies),
    }


def _describe_error(status: HTTPStatus) -> dict[str, Any]:
    error: Schema = {"$ref": "#/components/schemas/Error"}
    content: dict[str, Any]
    if status is HTTPStatus.UNAUTHORIZED:
        # The layer that rejects tokens ignores the header Accept.
        content = {
            "application/json": {
                "schema": {"anyOf": [error, {"$ref": "#/components/schemas/KeystoneError"}]}
            }
        }
    else:
        content = {"application/json": {"schema": error}}
        content |= {"text/html": {"schema": STRING}, "text/plain": {"schema": STRING}}
    return {"description": _MEANINGS[status], "headers": _HEADERS, "content": content}


def describe_query_value(operation: Operation, name: str, validating_schema: Schema) -> Schema:
    """Return the declared form of a parameter, or else the schema that validates it."""
    form: Schema = operation.forms.query.get(name) or transform(
        validating_schema, _with_lenient_format
    )
    if form.get("pattern") == _POSITIVE_INTEGER:
        form = INTEGER | {"minimum": 1}
    if name in operation.forms.repeated_query:
        return {"type": "array", "minItems": 1, "items": form}
    return form


def make_help_text(operation: Operation, name: str, *, is_suffixed: bool) -> str:
    """Return the description of a parameter: its help text and its suffixes."""
    line = operation.forms.help.get(name, "")
    sentence = f"{line[0].upper()}{line[1:]}." if line else ""
    return " ".join(filter(None, (sentence, _SUFFIX_HELP.format(name=name) * is_suffixed)))


def describe_body(operation: Operation, validating_schema: Schema) -> Schema:
    """Return the described schema of an operation's body."""
    form: Schema = transform(validating_schema, _with_lenient_format)
    described_schema = form if operation.forms.body is None else operation.forms.body(form)
    return transform(described_schema, _without_pattern_properties)  # type: ignore[no-any-return]


def _with_lenient_format(node: Schema) -> Schema:
    """Replace the format `uuid`, which is stricter than the service."""
    return dict(ANY_UUID) if node.get("format") == "uuid" and "pattern" not in node else node


def _without_pattern_properties(node: Schema) -> Schema:
    """Replace `patternProperties`, which generators of clients ignore, by `additionalProperties`."""
    patterns = node.get("patternProperties", {})
    if len(patterns) != 1 or node.get("additionalProperties", True) is not False:
        return node
    [(pattern, value)] = node.pop("patternProperties").items()
    names = {} if pattern == _ANY_KEY else {"propertyNames": {"pattern": pattern}}
    return node | names | {"additionalProperties": value}


def find_suffixed_parameters(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of the parameters that may have a suffix, by their plain names."""
    patterns: dict[str, Schema] = schema.get("patternProperties", {})
    matches = ((re.match(r"\^(\w+)\(", key), value) for key, value in patterns.items())
    return {match[1]: value for match, value in matches if match is not None}
