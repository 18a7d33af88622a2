# SPDX-License-Identifier: Apache-2.0
"""Usages (contract page 80)."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from treeclaim.api.protocol.operations import Answer, Call, VersionedSchema, operation
from treeclaim.api.protocol.request.schemas import AMOUNTS, SHORT_TEXT, Schema, record
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.resources.providers.provider_json import require_row
from treeclaim.model.claim import UsageGroup
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.store.reading import usages as store


def usage_query(version: Version) -> Schema:
    """Return the schema of the query of GET /usages."""
    optional = {"user_id": SHORT_TEXT}
    if version.has(Feature.CONSUMER_TYPES):
        pattern = "^[A-Z0-9_]+$|^all|^unknown$"
        optional["consumer_type"] = {"type": "string", "pattern": pattern} | SHORT_TEXT
    return record({"project_id": SHORT_TEXT}, optional)


QUERY = VersionedSchema(usage_query)
_ALL_TYPES = "all"


@operation(
    "GET /resource_providers/{uuid}/usages",
    policy="placement:resource_providers:usages",
    shows={"resource_provider_generation": int, "usages": AMOUNTS},
)
def show_provider_usages(call: Call) -> Answer:
    """Show how much of each inventory of a resource provider is used (section 1)."""
    with call.services.replica.current() as forest:
        row = require_row(forest, call.arguments["uuid"])
        return {
            "resource_provider_generation": forest.provider(row).generation,
            "usages": {entry.resource_class: entry.used for entry in forest.inventories(row)},
        }


@operation(
    "GET /usages",
    policy="placement:usages",
    shows={"usages": {str: AMOUNTS}},
    since=Feature.USAGES,
    query=QUERY,
)
def list_usages(call: Call) -> Answer:
    """Sum up what the consumers of a project hold (section 2)."""
    query = require_query(QUERY.at(call.version), call.query())
    project_id, user_id = query["project_id"], query.get("user_id")
    groups = call.services.store.read(
        partial(store.load_usages, project_id=project_id, user_id=user_id)
    )
    if not call.has(Feature.CONSUMER_TYPES):
        return {"usages": _sum(groups)}
    return {"usages": _by_type(groups, query.get("consumer_type"))}


def _by_type(groups: list[UsageGroup], type_filter: str | None) -> dict[str, dict[str, Any]]:
    """Return the usages by consumer type (section 2.2)."""
    if type_filter == _ALL_TYPES:
        count = sum(group.consumer_count for group in groups)
        return {_ALL_TYPES: {"consumer_count": count} | _sum(groups)} if groups else {}
    named = {group.consumer_type or UNKNOWN_TYPE: group for group in groups}
    return {
        name: {"consumer_count": group.consumer_count, **group.resources}
        for name, group in named.items()
        if type_filter in {None, name}
    }


def _sum(groups: Iterable[UsageGroup]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for group in groups:
        total.update(group.resources)
    return dict(total)
