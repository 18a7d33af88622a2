# SPDX-License-Identifier: Apache-2.0
"""Schemas of queries for allocation candidates (contract pages 90 and 97)."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import STRING, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.query_parameters import QUERY_PARAMETERS, Grammar, QueryParameter


def candidate_query(version: Version) -> Schema:
    """Return the schema of the names and scalar values of GET /allocation_candidates."""
    scalars = _scalars(version)
    grouped = _grouped(version)
    if not version.has(Feature.GRANULAR_GROUPS):
        others = {name: STRING for name in grouped if name != "resources"}
        return record({"resources": STRING}, scalars | others)
    suffix = "[a-zA-Z0-9_-]{1,64}" if version.has(Feature.NAMED_GROUPS) else "[1-9][0-9]*"
    return {
        "type": "object",
        "properties": scalars,
        "patternProperties": {f"^{name}({suffix})?$": STRING for name in grouped},
        "additionalProperties": False,
    }


def _scalars(version: Version) -> dict[str, Schema]:
    """Return the parameters that belong to no request group."""
    return {
        parameter.name: _checked(parameter)
        for parameter in QUERY_PARAMETERS
        if not parameter.of_group and version.brings(parameter.since)
    }


def _checked(parameter: QueryParameter) -> Schema:
    """Return what the schema checks of a value; what else is wrong with it, its reader says."""
    if parameter.grammar is Grammar.NUMBER:
        return {"type": "string", "pattern": "^[1-9][0-9]*$"}
    if parameter.grammar is Grammar.CHOICE:
        return {"type": "string", "enum": list(parameter.choices)}
    return STRING


def _grouped(version: Version) -> list[str]:
    """Return the names of the parameters of a request group."""
    return [
        parameter.name
        for parameter in QUERY_PARAMETERS
        if parameter.of_group and version.brings(parameter.since)
    ]


def explain_query(version: Version) -> Schema:
    """Return the schema of GET /allocation_candidates/explain: two parameters more."""
    schema = candidate_query(version)
    besides = {"nearest": {"type": "string", "pattern": "^[0-9]{1,2}$"}, "tree": STRING}
    return schema | {"properties": schema.get("properties", {}) | besides}


QUERY = Versioned(candidate_query)
"""The query of GET /allocation_candidates."""

EXPLAIN_QUERY = Versioned(explain_query)
"""The query of GET /allocation_candidates/explain."""
