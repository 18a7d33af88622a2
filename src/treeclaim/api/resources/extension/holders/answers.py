# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/allocations answers."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import AMOUNTS, INTEGER, LINKS, STRING, mapping, record
from treeclaim.api.resources.allocations.answers import DRAWN_FROM, HOLD

CONSUMER = record(
    {
        "uuid": STRING,
        "allocations": mapping(".*", record({"generation": INTEGER, "resources": AMOUNTS})),
        "project_id": STRING,
        "user_id": STRING,
        "consumer_generation": INTEGER,
        "consumer_type": STRING,
    },
    {
        "hold": HOLD,
        "drawn_from": DRAWN_FROM,
        "request": {"type": ["array", "null"], "items": STRING},
    },
)

CONSUMERS = Answer(
    body=record(
        {"consumers": {"type": "array", "items": CONSUMER}, "cursor": STRING, "links": LINKS}
    )
)
"""A page of consumers."""
