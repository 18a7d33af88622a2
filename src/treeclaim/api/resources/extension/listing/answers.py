# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/providers answers."""

from treeclaim.api.protocol.schemas import INTEGER, STRING, mapping, record
from treeclaim.api.protocol.wording import Schema

TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
LINKS: Schema = {"type": "array", "items": record({"rel": STRING, "href": STRING})}
AMOUNTS = mapping(".*", INTEGER)
STRINGS: Schema = {"type": "array", "items": STRING}

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

PROVIDERS = record(
    {"providers": {"type": "array", "items": PROVIDER}, "cursor": STRING, "links": LINKS}
)
