# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about allocations (contract page 70)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    GENERATION,
    INTEGER,
    STRING,
    mapping,
    record,
)

_SHARE = record({"generation": INTEGER, "resources": AMOUNTS})

CONSUMER = Answer(
    body=record(
        {"allocations": mapping(".*", _SHARE)},
        {
            "project_id": STRING,
            "user_id": STRING,
            "consumer_generation": INTEGER,
            "consumer_type": STRING,
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
