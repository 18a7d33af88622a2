# SPDX-License-Identifier: Apache-2.0
"""What POST /treeclaim/providers takes (contract page 99, section 8)."""

from typing import Any

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import INTEGER, SHORT_TEXT, UUID, record
from treeclaim.api.protocol.request.validation import Checker
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.inventories.schemas import all_inventories
from treeclaim.model.microversions import NEWEST, Version

MOST_ENTRIES = 1_000
"""Providers in one call."""

_BOOLEAN: Schema = {"type": "boolean"}
_UUID_OR_NULL: Schema = {"anyOf": [UUID, {"type": "null"}]}

ENTRY: Schema = record(
    {},
    {
        "uuid": UUID,
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "generation": INTEGER,
        "parent_provider_uuid": _UUID_OR_NULL,
        # It follows from the parent; what was listed may be sent back.
        "root_provider_uuid": _UUID_OR_NULL,
        "inventories": all_inventories(NEWEST)["properties"]["inventories"],
        "traits": {"type": "array", "items": SHORT_TEXT},
        "aggregates": {"type": "array", "items": UUID, "uniqueItems": True},
    },
) | {"anyOf": [{"required": ["uuid"]}, {"required": ["name"]}]}
"""One provider; the schema is that of its parts' own URLs."""

ENTRY_CHECKER = Checker(ENTRY)


def batch(_version: Version) -> Schema:
    """Return the schema of a batch; its entries are checked one by one, to tell of all."""
    providers: Schema = {
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_ENTRIES,
        "items": {"type": "object"},
    }
    return record({"providers": providers}, {"create_names": _BOOLEAN, "dry_run": _BOOLEAN})


def with_entries(schema: Any) -> Any:
    """Say in a copy of the schema of a batch what its entries are."""
    schema["properties"]["providers"]["items"] = ENTRY
    return schema


BATCH = Versioned(batch)
