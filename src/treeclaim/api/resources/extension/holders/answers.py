# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/allocations answers."""

from treeclaim.api.protocol.schemas import INTEGER, STRING, mapping, record
from treeclaim.api.resources.extension.listing.answers import AMOUNTS, LINKS

CONSUMER = record(
    {
        "uuid": STRING,
        "allocations": mapping(".*", record({"generation": INTEGER, "resources": AMOUNTS})),
        "project_id": STRING,
        "user_id": STRING,
        "consumer_generation": INTEGER,
        "consumer_type": STRING,
    }
)

CONSUMERS = record(
    {"consumers": {"type": "array", "items": CONSUMER}, "cursor": STRING, "links": LINKS}
)
