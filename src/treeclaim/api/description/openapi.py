# SPDX-License-Identifier: Apache-2.0
"""The API description: OpenAPI 3.1, derived from the declared operations.

It describes the newest microversion; `x-since` is the first microversion of an operation.
"""

import re
from collections.abc import Iterable
from typing import Any

from treeclaim import __version__
from treeclaim.api.description.responses import (
    ERROR,
    KEYSTONE_ERROR,
    SEGMENT,
    describe_body,
    describe_query_value,
    describe_responses,
    find_suffixed_parameters,
    make_help_text,
)
from treeclaim.api.protocol.negotiation import JSON
from treeclaim.api.protocol.operations import Operation
from treeclaim.api.protocol.request.schemas import Schema, transform
from treeclaim.model.microversions import MAXIMUM, MINIMUM, NEWEST, Version

_MEMBERS = {
    "Link": "href rel",
    "Version": "id links max_version min_version status",
    "RootProvider": "name uuid",
    "ResourceProvider": "generation links name parent_provider_uuid root_provider_uuid uuid",
    "Provider": "aggregates allocations attributes conditions generation inventories name "
    "parent_provider_uuid root_provider_uuid traits usages uuid",
    "ResourceClass": "links name",
    "Inventory": "allocation_ratio consumes max_unit min_unit reserved step_size total",
    "ProviderInventory": "allocation_ratio consumes max_unit min_unit reserved "
    "resource_provider_generation step_size total",
    "Inventories": "inventories resource_provider_generation",
    "Aggregates": "aggregates resource_provider_generation",
    "Traits": "resource_provider_generation traits",
    "Attributes": "attributes resource_provider_generation",
    "Consumption": "amount provider resource_class",
    "Condition": "began effect on_use reason until",
    "ProviderAllocation": "generation resources",
    "ConsumerAllocation": "consumer_generation resources",
    "Claim": "allocations consumer_generation consumer_type drawn_from from_holds hold mappings "
    "project_id request request_valid tolerates user_id",
    "Candidate": "allocations mappings",
    "ProviderSummary": "parent_provider_uuid resources root_provider_uuid traits",
    "Capacity": "capacity used",
    "Explanation": "advice feasible fits_when_empty funnel nearest trees",
    "FunnelStep": "detail group reason trees_after trees_before",
    "NearTree": "blocked_by root_provider",
    "Placement": "allocations alternative approximate consumer consumer_generation dropped mappings "
    "root_providers",
    "PlacementResult": "explanation given placements unplaced",
    "Assumptions": "place providers release without",
    "AssumedProvider": "aggregates attributes conditions generation inventories name "
    "parent_provider_uuid root_provider_uuid traits uuid",
    "AmountOfQuery": "amount query",
    "Totals": "capacity free held largest_free providers reserved stranded total used",
    "Findings": "count items",
}
"""Members of the named objects."""

_NAME_BY_MEMBERS = {frozenset(members.split()): name for name, members in _MEMBERS.items()}


class SchemaNames:
    """The named schemas of a document."""

    def __init__(self, **schemas: Schema) -> None:
        self.schemas = dict(schemas)

    def name_body(self, schema: Schema, name: str) -> Schema:
        """Return a reference to the schema of a body, and name the known objects within it.

        `name` applies to a body that is no known object.
        """
        named_schema = transform(schema, self._name_part)
        is_named = named_schema.keys() == {"$ref"} or named_schema.get("type") != "object"
        return named_schema if is_named else self._make_reference(name, named_schema)

    def _name_part(self, node: Schema) -> Schema:
        is_object = node.get("type") == "object" and isinstance(node.get("properties"), dict)
        name = _NAME_BY_MEMBERS.get(frozenset(node["properties"])) if is_object else None
        return node if name is None else self._make_reference(name, node)

    def _make_reference(self, name: str, schema: Schema) -> Schema:
        # Requests may have another form of an object than responses.
        for candidate in (name, f"{name}Input", f"{name}Update"):
            if self.schemas.setdefault(candidate, schema) == schema:
                return {"$ref": f"#/components/schemas/{candidate}"}
        return schema


_VERSION_HELP = (
    f"This description applies to `placement {MAXIMUM}`. A request without a version of `placement` in the header "
    f"`OpenStack-API-Version` has the version {MINIMUM}: newer operations are not found, newer members and parameters "
    "are rejected, and responses have fewer members. An invalid version is a 400, an unsupported version a 406."
)


def build_description(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document of operations."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe_operation(
            operation
        )
    names = _name_schemas(paths)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Treeclaim: the Placement API",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": f"Microversions {MINIMUM} to {MAXIMUM}. {_VERSION_HELP}",
        },
        "paths": paths,
        "components": {
            "schemas": names.schemas,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
        },
    }


def _name_schemas(paths: dict[str, dict[str, Any]]) -> SchemaNames:
    """Replace the schemas of bodies by references, and return the named schemas; responses are named first."""
    names = SchemaNames(Error=ERROR, KeystoneError=KEYSTONE_ERROR)
    described_operations = [
        operation for methods in paths.values() for operation in methods.values()
    ]
    for operation in described_operations:
        for status, response in operation["responses"].items():
            if status.startswith("2") and JSON in response.get("content", {}):
                content = response["content"][JSON]
                name = f"{_capitalize(operation['operationId'])}Response"
                content["schema"] = names.name_body(content["schema"], name)
    for operation in described_operations:
        if "requestBody" in operation:
            content = operation["requestBody"]["content"][JSON]
            name = f"{_capitalize(operation['operationId'])}Body"
            content["schema"] = names.name_body(content["schema"], name)
    return names


def _capitalize(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


def _describe_operation(operation: Operation) -> dict[str, Any]:
    description: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "x-since": _find_first_version(operation),
        "parameters": [
            _describe_version_header(operation),
            *_describe_path_parameters(operation),
            *_describe_query_parameters(operation),
        ],
        "responses": describe_responses(operation),
    }
    if operation.policy is not None:
        description["security"] = [{"token": []}]
        description["x-policy"] = operation.policy
    if operation.body is not None and operation.reads_body(MAXIMUM):
        schema = describe_body(
            operation, operation.body.at(_find_described_version(operation)).schema
        )
        description["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": schema}},
        }
    return description


def _find_first_version(operation: Operation) -> str:
    if operation.needs_opt_in:
        return str(MAXIMUM)
    return str(MINIMUM) if operation.since is None else operation.since.version


def _find_described_version(operation: Operation) -> Version:
    return NEWEST if operation.needs_opt_in or _is_extended(operation) else MAXIMUM


def _is_extended(operation: Operation) -> bool:
    """Return whether the extension adds parameters or members to an operation of Placement."""
    versioned_schemas = [
        schemas for schemas in (operation.body, operation.query) if schemas is not None
    ]
    return any(
        schemas.at(NEWEST).schema != schemas.at(MAXIMUM).schema for schemas in versioned_schemas
    )


def _describe_version_header(operation: Operation) -> Schema:
    """Describe the header that selects the microversion (contract page 10, section 2)."""
    header_values = [_find_described_version(operation).header]
    if not operation.needs_opt_in:
        header_values += [MAXIMUM.header] * _is_extended(operation) + ["placement latest"]
    return {
        "name": "OpenStack-API-Version",
        "in": "header",
        "required": operation.needs_opt_in,
        "description": _VERSION_HELP,
        "schema": {"type": "string"},
        "examples": {value.replace(" ", "-"): {"value": value} for value in header_values},
    }


def _describe_path_parameters(operation: Operation) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": operation.forms.path.get(name, SEGMENT),
        }
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]


def _describe_query_parameters(operation: Operation) -> list[Schema]:
    """Describe the query parameters; those with suffixes have their plain names."""
    if operation.query is None:
        return []
    schema = operation.query.at(_find_described_version(operation)).schema
    suffixed_parameters = find_suffixed_parameters(schema)
    required_names = schema.get("required", [])
    parameters: list[Schema] = []
    for name, validating_schema in (schema.get("properties", {}) | suffixed_parameters).items():
        parameter: Schema = {"name": name, "in": "query", "required": name in required_names}
        help_text = make_help_text(operation, name, is_suffixed=name in suffixed_parameters)
        if help_text:
            parameter["description"] = help_text
        parameters.append(
            parameter | {"schema": describe_query_value(operation, name, validating_schema)}
        )
    return parameters
