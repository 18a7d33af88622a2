# SPDX-License-Identifier: Apache-2.0
"""Schemas and forms of queries for candidates, and shapes of the responses (contract pages 90 and 97)."""

from typing import Annotated

from pydantic import Field

from treeclaim.api.protocol.operations import ValueForms, VersionedSchema
from treeclaim.api.protocol.request.bodies import AnyUuid, Body
from treeclaim.api.protocol.request.query_models import READ_INTEGER, QueryReader
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    MEMBER_OF,
    STRING,
    UUID_PATTERN,
    Schema,
    Shape,
    list_pattern,
    record,
    text,
)
from treeclaim.forest.explain.constraints import Reason
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.provider import CONDITION_KEY
from treeclaim.model.query.parameters import QUERY_PARAMETERS, Grammar, QueryParameter


def _make_query_schema(version: Version) -> Schema:
    """Return the schema of the names and scalar values of a query for candidates."""
    scalars = _make_scalar_parameters(version)
    grouped = _list_group_parameters(version)
    if not version.has(Feature.GRANULAR_GROUPS):
        group_parameters = {name: STRING for name in grouped if name != "resources"}
        return record({"resources": STRING}, scalars | group_parameters)
    suffix = "[a-zA-Z0-9_-]{1,64}" if version.has(Feature.NAMED_GROUPS) else "[1-9][0-9]*"
    return {
        "type": "object",
        "properties": scalars,
        "patternProperties": {f"^{name}({suffix})?$": STRING for name in grouped},
        "additionalProperties": False,
    }


def _make_scalar_parameters(version: Version) -> dict[str, Schema]:
    return {
        parameter.name: _make_value_schema(parameter)
        for parameter in QUERY_PARAMETERS
        if not parameter.of_group and version.has(parameter.since)
    }


def _make_value_schema(parameter: QueryParameter) -> Schema:
    """Return the schema that validates a value before the parser does."""
    if parameter.grammar is Grammar.NUMBER:
        return {"type": "string", "pattern": "^[1-9][0-9]*$"}
    if parameter.grammar is Grammar.CHOICE:
        return {"type": "string", "enum": list(parameter.choices)}
    return STRING


def _list_group_parameters(version: Version) -> list[str]:
    return [
        parameter.name
        for parameter in QUERY_PARAMETERS
        if parameter.of_group and version.has(parameter.since)
    ]


class FocusQuery(Body):
    """The parameters of an explanation beside those of the search."""

    nearest: Annotated[int, Field(ge=0, le=50), READ_INTEGER] = 5
    tree: AnyUuid | None = None


FOCUS = QueryReader(FocusQuery)


def _make_explain_query_schema(version: Version) -> Schema:
    schema = _make_query_schema(version)
    return schema | {"properties": schema["properties"] | FOCUS.schema["properties"]}


QUERY = VersionedSchema(_make_query_schema)
EXPLAIN_QUERY = VersionedSchema(_make_explain_query_schema)


CANDIDATES: Shape = {
    "allocation_requests": [
        {"allocations": {str: {"resources": AMOUNTS}}, "mappings": {str: [str]}}
    ],
    "provider_summaries": {
        str: {
            "resources": {str: {"capacity": int, "used": int}},
            "traits": [str],
            "parent_provider_uuid": str | None,
            "root_provider_uuid": str,
        }
    },
    "scores?": [float],
    "approximate?": bool,
}

EXPLANATION: Shape = {
    "feasible": bool,
    "fits_when_empty": bool,
    "trees": {"considered": int, "matching": int},
    "funnel": [
        {
            "group": str | None,
            "reason": tuple(reason.value for reason in Reason),
            "detail": dict,
            "trees_before": int,
            "trees_after": int,
        }
    ],
    "nearest": [{"root_provider": {"uuid": str, "name": str}, "blocked_by": [dict]}],
    "advice": [str],
}


TYPE_UNLESS_HOLD: Schema = {
    "if": {"required": ["hold"], "properties": {"hold": {"type": "object"}}},
    "else": {"required": ["consumer_type"]},
}
"""The consumer type is optional for a hold. Generators of clients would take `anyOf` for a choice of types."""


_CLASS = "[A-Z0-9_]+"
_TRAIT = "[A-Z0-9_]+"
_SIGNED_TRAITS = f"!?{_TRAIT}(,!?{_TRAIT})*"
_SUFFIX = "[a-zA-Z0-9_-]{1,64}"

_FORMS: dict[Grammar, Schema] = {
    Grammar.AMOUNTS: text(list_pattern(f"{_CLASS}:[1-9][0-9]*")),
    Grammar.TRAITS_OR_ANY: text(f"(in:{list_pattern(_TRAIT)}|{_SIGNED_TRAITS})"),
    Grammar.PREFERENCES: text(list_pattern(rf"!?{_TRAIT}(\*[1-9][0-9]?)?")),
    Grammar.AGGREGATES: MEMBER_OF,
    Grammar.TREES: text(f"({UUID_PATTERN}|in:{list_pattern(UUID_PATTERN)})"),
    Grammar.TREES_OR_NOT: MEMBER_OF,
    Grammar.UUIDS: text(list_pattern(UUID_PATTERN)),
    Grammar.CLASSES: text(list_pattern(_CLASS)),
    Grammar.KEYS: text(list_pattern(CONDITION_KEY)),
    Grammar.SUFFIXES: text(list_pattern(_SUFFIX)),
    Grammar.SUFFIXES_OR_NOT: text(list_pattern(f"!?{_SUFFIX}")),
    Grammar.EXPRESSION: text(r"(exists )?[a-z][a-z0-9_]{7}( (==|!=) ('[a-z]*'|[1-9]))?"),
    Grammar.VALUE_LIST: text(rf"[a-z][a-z0-9_]{{7}}(:{_SUFFIX}){{2,}}"),
    Grammar.TERMS: text(list_pattern(r"(pack|spread)(_providers)?(\*[1-9][0-9]?)?")),
}
"""Forms of values by grammar; numbers and choices have complete schemas."""

_SEARCH: dict[str, Schema] = {
    parameter.name: _FORMS[parameter.grammar]
    for parameter in QUERY_PARAMETERS
    if parameter.grammar in _FORMS
}

_REPEATED = frozenset(parameter.name for parameter in QUERY_PARAMETERS if parameter.is_list)
"""Parameters with several effective values."""

_HELP = {parameter.name: parameter.help for parameter in QUERY_PARAMETERS}

SEARCH_FORMS = ValueForms(query=_SEARCH, help=_HELP, repeated_query=_REPEATED)
