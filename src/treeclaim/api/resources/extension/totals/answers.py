# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/totals answers."""

from dataclasses import fields

from treeclaim.api.protocol.schemas import INTEGER, STRING, mapping, record
from treeclaim.api.resources.extension.listing.answers import LINKS, TEXT_OR_NULL
from treeclaim.forest.listing.totals import ClassTotals

SUMS = mapping(".*", record({one.name: INTEGER for one in fields(ClassTotals)}))

TOTALS = record(
    {"totals": SUMS, "cursor": STRING, "links": LINKS},
    {
        "parts": {
            "type": "array",
            "items": record({"uuid": TEXT_OR_NULL, "name": TEXT_OR_NULL, "totals": SUMS}),
        }
    },
)
