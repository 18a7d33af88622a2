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
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.planning.given import TOLD
from treeclaim.forest.listing.totals import ClassTotals

SUMS = mapping(
    ".*",
    record({field.name: INTEGER for field in fields(ClassTotals)}, {"held": INTEGER}),
)

_REQUIRED = {"totals": SUMS, "cursor": STRING, "links": LINKS}
_OPTIONAL: dict[str, Schema] = {
    "parts": {
        "type": "array",
        "items": record({"uuid": TEXT_OR_NULL, "name": TEXT_OR_NULL, "totals": SUMS}),
    }
}

TOTALS = Answer(body=record(_REQUIRED, _OPTIONAL))
"""Sums, and a page of parts."""

GIVEN_TOTALS = Answer(body=record(_REQUIRED, _OPTIONAL | {"given": TOLD}), dated=False)
"""The same as things would be."""
