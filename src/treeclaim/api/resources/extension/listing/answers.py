# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/providers answers."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    INTEGER,
    LINKS,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    mapping,
    record,
)

INVENTORY = record(
    {
        **dict.fromkeys(("total", "reserved", "min_unit", "max_unit", "step_size"), INTEGER),
        "allocation_ratio": {"type": "number"},
    }
)

PROVIDER = record(
    {
        "uuid": STRING,
        "name": STRING,
        "generation": INTEGER,
        "parent_provider_uuid": TEXT_OR_NULL,
        "root_provider_uuid": STRING,
    },
    {
        "inventories": mapping(".*", INVENTORY),
        "usages": AMOUNTS,
        "traits": STRINGS,
        "aggregates": STRINGS,
        "allocations": mapping(
            ".*", record({"resources": AMOUNTS, "consumer_generation": INTEGER})
        ),
    },
)

PROVIDERS = Answer(
    body=record(
        {"providers": {"type": "array", "items": PROVIDER}, "cursor": STRING, "links": LINKS}
    )
)
"""A page of providers."""
