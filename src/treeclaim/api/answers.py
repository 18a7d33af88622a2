# SPDX-License-Identifier: Apache-2.0
"""Schemas of successful answers at the newest microversion, by handler and status."""

from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.schemas import INTEGER, STRING, mapping, record
from treeclaim.api.protocol.wording import Schema
from treeclaim.api.resources.extension import answers as extension
from treeclaim.model.reasons import Reason

_OK, _CREATED, _EMPTY = HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT

_STRINGS: Schema = {"type": "array", "items": STRING}
_LINKS: Schema = {"type": "array", "items": record({"rel": STRING, "href": STRING})}
_GENERATION = {"resource_provider_generation": INTEGER}
_AMOUNTS = mapping(".*", INTEGER)
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}

_PROVIDER = record(
    {
        "uuid": STRING,
        "name": STRING,
        "generation": INTEGER,
        "links": _LINKS,
        "parent_provider_uuid": _TEXT_OR_NULL,
        "root_provider_uuid": STRING,
    }
)
_INVENTORY_FIELDS: dict[str, Schema] = {
    **dict.fromkeys(("total", "reserved", "min_unit", "max_unit", "step_size"), INTEGER),
    "allocation_ratio": {"type": "number"},
}
_INVENTORY = record(_INVENTORY_FIELDS | _GENERATION)
_INVENTORIES = record(_GENERATION | {"inventories": mapping(".*", record(_INVENTORY_FIELDS))})
_AGGREGATES = record({"aggregates": _STRINGS} | _GENERATION)
_PROVIDER_TRAITS = record({"traits": _STRINGS} | _GENERATION)
_CLASS = record({"name": STRING, "links": _LINKS})
_HELD = mapping(".*", record({"generation": INTEGER, "resources": _AMOUNTS}))
_ALLOCATIONS = record(
    {"allocations": _HELD},
    {
        "project_id": STRING,
        "user_id": STRING,
        "consumer_generation": INTEGER,
        "consumer_type": STRING,
    },
)
_PROVIDER_ALLOCATIONS = record(
    {"allocations": mapping(".*", record({"resources": _AMOUNTS, "consumer_generation": INTEGER}))}
    | _GENERATION
)
_CANDIDATES = record(
    {
        "allocation_requests": {
            "type": "array",
            "items": record(
                {
                    "allocations": mapping(".*", record({"resources": _AMOUNTS})),
                    "mappings": mapping(".*", _STRINGS),
                }
            ),
        },
        "provider_summaries": mapping(
            ".*",
            record(
                {
                    "resources": mapping(".*", record({"capacity": INTEGER, "used": INTEGER})),
                    "traits": _STRINGS,
                    "parent_provider_uuid": _TEXT_OR_NULL,
                    "root_provider_uuid": STRING,
                }
            ),
        ),
    }
)

ERROR: Schema = record(
    {
        "errors": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": record(
                {"status": INTEGER, "title": STRING, "detail": STRING, "request_id": STRING},
                {"code": STRING, "min_version": STRING, "max_version": STRING},
            ),
        }
    }
)

BODIES: dict[tuple[str, HTTPStatus], Schema] = {
    ("show_versions", _OK): record({"versions": {"type": "array"}}),
    ("show_extension_versions", _OK): record({"versions": {"type": "array"}}),
    ("show_description", _OK): {"type": "object"},
    ("explain_candidates", _OK): record(
        {
            "feasible": {"type": "boolean"},
            "fits_when_empty": {"type": "boolean"},
            "trees": record({"considered": INTEGER, "matching": INTEGER}),
            "funnel": {
                "type": "array",
                "items": record(
                    {
                        "group": _TEXT_OR_NULL,
                        "reason": {"enum": [one.value for one in Reason]},
                        "detail": {"type": "object"},
                        "trees_before": INTEGER,
                        "trees_after": INTEGER,
                    }
                ),
            },
            "nearest": {
                "type": "array",
                "items": record(
                    {
                        "root_provider": record({"uuid": STRING, "name": STRING}),
                        "blocked_by": {"type": "array"},
                    }
                ),
            },
            "advice": _STRINGS,
        }
    ),
    ("list_providers", _OK): record({"resource_providers": {"type": "array", "items": _PROVIDER}}),
    ("create_provider", _OK): _PROVIDER,
    ("show_provider", _OK): _PROVIDER,
    ("update_provider", _OK): _PROVIDER,
    ("list_inventories", _OK): _INVENTORIES,
    ("add_inventory", _CREATED): _INVENTORY,
    ("replace_inventories", _OK): _INVENTORIES,
    ("show_inventory", _OK): _INVENTORY,
    ("replace_inventory", _OK): _INVENTORY,
    ("list_aggregates", _OK): _AGGREGATES,
    ("replace_aggregates", _OK): _AGGREGATES,
    ("list_traits", _OK): record({"traits": _STRINGS}),
    ("list_provider_traits", _OK): _PROVIDER_TRAITS,
    ("replace_provider_traits", _OK): _PROVIDER_TRAITS,
    ("list_classes", _OK): record({"resource_classes": {"type": "array", "items": _CLASS}}),
    ("show_class", _OK): _CLASS,
    ("show_allocations", _OK): _ALLOCATIONS,
    ("list_provider_allocations", _OK): _PROVIDER_ALLOCATIONS,
    ("show_provider_usages", _OK): record(_GENERATION | {"usages": _AMOUNTS}),
    ("list_usages", _OK): record({"usages": mapping(".*", _AMOUNTS)}),
    ("list_candidates", _OK): _CANDIDATES,
    **extension.BODIES,
}
"""Answers with a body."""

_WITHOUT_BODY: dict[str, tuple[HTTPStatus, ...]] = {
    "delete_provider": (_EMPTY,),
    "delete_inventories": (_EMPTY,),
    "delete_inventory": (_EMPTY,),
    "show_trait": (_EMPTY,),
    "ensure_trait": (_CREATED, _EMPTY),
    "delete_trait": (_EMPTY,),
    "clear_provider_traits": (_EMPTY,),
    "create_class": (_CREATED,),
    "put_class": (_CREATED, _EMPTY),
    "delete_class": (_EMPTY,),
    "replace_allocations": (_EMPTY,),
    "manage_allocations": (_EMPTY,),
    "delete_allocations": (_EMPTY,),
    "reshape": (_EMPTY,),
}

SUCCESSES: dict[str, tuple[Any, ...]] = _WITHOUT_BODY | {
    handler: (status,) for handler, status in BODIES
}
"""Statuses of success by handler."""
