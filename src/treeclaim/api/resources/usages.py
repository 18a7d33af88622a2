# SPDX-License-Identifier: Apache-2.0
"""Usages (contract page 80)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from treeclaim.api.protocol.operations import Answer, Call, VersionedSchema, operation
from treeclaim.api.protocol.request.schemas import AMOUNTS, SHORT_TEXT, Schema, record
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.resources.providers.provider_json import require_row
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.store.reading import usages as store


def _make_query_schema(version: Version) -> Schema:
    optional = {"user_id": SHORT_TEXT}
    if version.has(Feature.CONSUMER_TYPES):
        pattern = "^[A-Z0-9_]+$|^all|^unknown$"
        optional["consumer_type"] = {"type": "string", "pattern": pattern} | SHORT_TEXT
    return record({"project_id": SHORT_TEXT}, optional)


QUERY = VersionedSchema(_make_query_schema)
_ALL_TYPES = "all"


@operation(
    "GET /resource_providers/{uuid}/usages",
    policy="placement:resource_providers:usages",
    shows={"resource_provider_generation": int, "usages": AMOUNTS},
)
def show_provider_usages(call: Call) -> Answer:
    """Show the used amounts of a resource provider (section 1)."""
    with call.services.replica.borrow_forest() as forest:
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
    """Sum up the usages of a project (section 2)."""
    query = require_query(QUERY.at(call.version), call.read_query())
    project_id, user_id = query["project_id"], query.get("user_id")
    groups = call.services.store.read(
        partial(store.load_usages, project_id=project_id, user_id=user_id)
    )
    if not call.has(Feature.CONSUMER_TYPES):
        usages = _sum(groups.values())
        usages.pop("consumer_count", None)
        return {"usages": usages}
    type_filter = query.get("consumer_type")
    if type_filter == _ALL_TYPES:
        return {"usages": {_ALL_TYPES: _sum(groups.values())} if groups else {}}
    group_by_type = {name or UNKNOWN_TYPE: group for name, group in groups.items()}
    return {
        "usages": {
            name: group for name, group in group_by_type.items() if type_filter in {None, name}
        }
    }


def _sum(groups: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for group in groups:
        total.update(group)
    return dict(total)
