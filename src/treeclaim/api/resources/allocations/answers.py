# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about allocations (contract page 70)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    GENERATION,
    INTEGER,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    mapping,
    record,
)

_SHARE = record({"generation": INTEGER, "resources": AMOUNTS})

HOLD = record(
    {
        "until": TEXT_OR_NULL,
        "returns": {"type": "boolean"},
        "projects": STRINGS,
        "note": TEXT_OR_NULL,
        "drawn": mapping(".*", AMOUNTS),
    }
) | {"type": ["object", "null"]}
"""Terms of a hold, and what is drawn from it; null for other consumers."""

DRAWN_FROM = mapping(".*", mapping(".*", AMOUNTS))
"""What a consumer has drawn, by hold and provider."""

CONSUMER = Answer(
    body=record(
        {"allocations": mapping(".*", _SHARE)},
        {
            "project_id": STRING,
            "user_id": STRING,
            "consumer_generation": INTEGER,
            "consumer_type": STRING,
            "hold": HOLD,
            "drawn_from": DRAWN_FROM,
            "request": {"type": ["array", "null"], "items": STRING},
            "request_valid": {"type": ["boolean", "null"]},
        },
    )
)
"""What a consumer holds; only the allocations are there where it holds nothing."""

PROVIDER = Answer(
    body=record(
        {
            "allocations": mapping(
                ".*", record({"resources": AMOUNTS, "consumer_generation": INTEGER})
            )
        }
        | GENERATION
    )
)
"""What consumers hold on a provider."""
