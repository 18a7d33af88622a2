# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers to searches (contract page 90, section 4, and page 97, section 3)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    INTEGER,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    mapping,
    record,
)
from treeclaim.model.reasons import Reason

CANDIDATES = Answer(
    body=record(
        {
            "allocation_requests": {
                "type": "array",
                "items": record(
                    {
                        "allocations": mapping(".*", record({"resources": AMOUNTS})),
                        "mappings": mapping(".*", STRINGS),
                    }
                ),
            },
            "provider_summaries": mapping(
                ".*",
                record(
                    {
                        "resources": mapping(".*", record({"capacity": INTEGER, "used": INTEGER})),
                        "traits": STRINGS,
                        "parent_provider_uuid": TEXT_OR_NULL,
                        "root_provider_uuid": STRING,
                    }
                ),
            ),
        },
        {"scores": {"type": "array", "items": {"type": "number"}}},
    )
)
"""Candidates and the summaries of their providers."""

EXPLANATION = Answer(
    body=record(
        {
            "feasible": {"type": "boolean"},
            "fits_when_empty": {"type": "boolean"},
            "trees": record({"considered": INTEGER, "matching": INTEGER}),
            "funnel": {
                "type": "array",
                "items": record(
                    {
                        "group": TEXT_OR_NULL,
                        "reason": {"enum": [reason.value for reason in Reason]},
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
                        "blocked_by": {"type": "array", "items": {"type": "object"}},
                    }
                ),
            },
            "advice": STRINGS,
        }
    )
)
"""Why a search finds what it finds."""
