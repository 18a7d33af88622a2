# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/holds answers."""

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

HOLD = record(
    {
        "until": TEXT_OR_NULL,
        "returns": {"type": "boolean"},
        "projects": STRINGS,
        "note": TEXT_OR_NULL,
        "drawn": mapping(".*", AMOUNTS),
    }
)
"""The terms of a hold, and what is drawn from it."""

HOLDS = Answer(
    body=record(
        {
            "holds": {
                "type": "array",
                "items": record(
                    {
                        "uuid": STRING,
                        "project_id": STRING,
                        "user_id": STRING,
                        "consumer_generation": INTEGER,
                        "allocations": mapping(
                            ".*", record({"generation": INTEGER, "resources": AMOUNTS})
                        ),
                        "hold": HOLD,
                    }
                ),
            },
            "cursor": STRING,
            "links": LINKS,
        }
    )
)
"""A page of holds."""

UPDATED = Answer(body=record({"updated": INTEGER, "unknown": STRINGS}), dated=False)
"""How many consumers exist of those that were named, and which do not."""
