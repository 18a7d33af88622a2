# SPDX-License-Identifier: Apache-2.0
"""Names of schemas in the API description, so that generated clients have named types."""

from collections.abc import Mapping
from typing import Any

from treeclaim.api.protocol.request.schemas import Schema

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
"""Members of the objects that have a name of their own."""

_NAMES = {frozenset(members.split()): name for name, members in _MEMBERS.items()}


class SchemaNames:
    """The named schemas of a document.

    Attributes:
        schemas: By their names.
    """

    def __init__(self, **schemas: Schema) -> None:
        self.schemas = dict(schemas)

    def name_body(self, schema: Schema, name: str) -> Schema:
        """Return a reference to the schema of a body, in which all objects of a known kind are named.

        Args:
            schema: The schema.
            name: Its name, unless it is an object of a known kind.
        """
        named = self._name_parts(schema)
        is_named = named.keys() == {"$ref"} or named.get("type") != "object"
        return named if is_named else self._refer(name, named)

    def _name_parts(self, node: Any) -> Any:
        if isinstance(node, list | tuple):
            return [self._name_parts(part) for part in node]
        if not isinstance(node, Mapping):
            return node
        copied = {key: self._name_parts(part) for key, part in node.items()}
        if copied.get("type") != "object" or not isinstance(copied.get("properties"), dict):
            return copied
        name = _NAMES.get(frozenset(copied["properties"]))
        return copied if name is None else self._refer(name, copied)

    def _refer(self, name: str, schema: Schema) -> Schema:
        """Return a reference; requests may have other forms of an object than responses."""
        for possible in (name, f"{name}Input", f"{name}Update"):
            if self.schemas.setdefault(possible, schema) == schema:
                return {"$ref": f"#/components/schemas/{possible}"}
        return schema
