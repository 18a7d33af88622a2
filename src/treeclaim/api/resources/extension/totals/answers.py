# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/totals answers."""

from dataclasses import fields

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    INTEGER,
    LINKS,
    STRING,
    TEXT_OR_NULL,
    mapping,
    record,
)
from treeclaim.forest.listing.totals import ClassTotals

SUMS = mapping(
    ".*",
    record({field.name: INTEGER for field in fields(ClassTotals)}, {"held": INTEGER}),
)

TOTALS = Answer(
    body=record(
        {"totals": SUMS, "cursor": STRING, "links": LINKS},
        {
            "parts": {
                "type": "array",
                "items": record({"uuid": TEXT_OR_NULL, "name": TEXT_OR_NULL, "totals": SUMS}),
            }
        },
    )
)
"""Sums, and a page of parts."""
