# SPDX-License-Identifier: Apache-2.0
"""Schemas of queries for allocation candidates (contract pages 90 and 97)."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import STRING, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import ExtensionFeature, Feature, Version


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
    scalars: dict[str, Schema] = {}
    for feature, name, schema in (
        (Feature.CANDIDATE_LIMIT, "limit", {"type": "string", "pattern": "^[1-9][0-9]*$"}),
        (Feature.GRANULAR_GROUPS, "group_policy", {"type": "string", "enum": ["none", "isolate"]}),
        (Feature.ROOT_REQUIRED, "root_required", STRING),
        (Feature.SAME_SUBTREE, "same_subtree", STRING),
    ):
        if version.has(feature):
            scalars[name] = schema
    if version.extended:
        scalars |= {
            "root_member_of": STRING,
            "isolate": STRING,
            "can_split": STRING,
            "split_policy": {"type": "string", "enum": ["pack", "even"]},
        }
    if version.has_extension(ExtensionFeature.ORDER_AND_REPORTS):
        scalars |= {"order_by": STRING, "root_in_tree": STRING}
    return scalars


def _grouped(version: Version) -> list[str]:
    """Return the parameters of a request group."""
    grouped = ["resources"]
    if version.extended:
        grouped.append("in_subtree")
    if version.has_extension(ExtensionFeature.ORDER_AND_REPORTS):
        grouped.append("preferred")
    for feature, name in (
        (Feature.CANDIDATE_TRAITS, "required"),
        (Feature.CANDIDATE_MEMBER_OF, "member_of"),
        (Feature.CANDIDATE_IN_TREE, "in_tree"),
    ):
        if version.has(feature):
            grouped.append(name)
    return grouped


def explain_query(version: Version) -> Schema:
    """Return the schema of GET /allocation_candidates/explain: two parameters more."""
    schema = candidate_query(version)
    own = {"nearest": {"type": "string", "pattern": "^[0-9]{1,2}$"}, "tree": STRING}
    return schema | {"properties": schema.get("properties", {}) | own}


QUERY = Versioned(candidate_query)
"""The query of GET /allocation_candidates."""

EXPLAIN_QUERY = Versioned(explain_query)
"""The query of GET /allocation_candidates/explain."""
