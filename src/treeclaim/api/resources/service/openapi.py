# SPDX-License-Identifier: Apache-2.0
"""The API description: OpenAPI 3.1, made from the declarations that the service itself uses.

It describes the newest microversion; `x-since` says from which one an operation exists.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from treeclaim import __version__
from treeclaim.api import answers
from treeclaim.api.protocol.microversions import MAXIMUM, MINIMUM
from treeclaim.api.protocol.operations import Call, Operation, Reply
from treeclaim.api.protocol.wording import Schema

_GROUPED = re.compile(r"\^(\w+)\(")


def description(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the whole document about some operations."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Treeclaim: the Placement API",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": f"Microversions {MINIMUM} to {MAXIMUM}; this describes {MAXIMUM}.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": answers.ERROR},
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        "x-since": f"{MINIMUM.major}.{operation.since}",
        "parameters": [
            _version(operation),
            *_path_parameters(operation),
            *_query_parameters(operation),
        ],
        "responses": _responses(operation),
    }
    if operation.policy is not None:
        described["security"] = [{"token": []}]
        described["x-policy"] = operation.policy
    if operation.body is not None and operation.needs_json(MAXIMUM):
        schema = operation.body.at(MAXIMUM).schema
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return described


def _version(operation: Operation) -> Schema:
    version = replace(MAXIMUM, extended=operation.extension)
    return {
        "name": "OpenStack-API-Version",
        "in": "header",
        "required": True,
        "schema": {"type": "string", "const": version.header},
    }


def _path_parameters(operation: Operation) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": "^[^/]+$"},
        }
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]


def _query_parameters(operation: Operation) -> list[Schema]:
    """Describe the parameters; a pattern with a suffix is described by its plain name."""
    if operation.query is None:
        return []
    schema = operation.query.at(MAXIMUM).schema
    named = dict(schema.get("properties", {}))
    for pattern, one in schema.get("patternProperties", {}).items():
        match = _GROUPED.match(pattern)
        if match is not None:
            named[match.group(1)] = one
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": one}
        for name, one in named.items()
    ]


def _responses(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status in answers.SUCCESSES[operation.handler.__name__]:
        one: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        schema = answers.BODIES.get((operation.handler.__name__, status))
        if schema is not None:
            one["content"] = {"application/json": {"schema": schema}}
        responses[str(int(status))] = one
    error = {"$ref": "#/components/schemas/Error"}
    responses["default"] = {
        "description": "An error.",
        "content": {"application/json": {"schema": error}},
    }
    return responses


def show_description(call: Call) -> Reply:
    """Show this description; it needs no token."""
    return Reply(body=call.services.description)


OPERATIONS = (
    Operation(
        "GET",
        "/openapi.json",
        show_description,
        policy=None,
        summary="Show the description of this API.",
    ),
)
