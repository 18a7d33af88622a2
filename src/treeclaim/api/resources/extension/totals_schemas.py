# SPDX-License-Identifier: Apache-2.0
"""Queries and responses of /treeclaim/totals."""

from dataclasses import fields

from treeclaim.api.protocol.operations import Answer, Versioned
from treeclaim.api.protocol.request.schemas import (
    INTEGER,
    LINKS,
    STRING,
    TEXT_OR_NULL,
    Schema,
    mapping,
    record,
)
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.planning.assumptions import ASSUMED, Assumptions, QuestionBody
from treeclaim.forest.listing.parts import By
from treeclaim.forest.listing.totals import ClassTotals

PATH = "/treeclaim/totals"


_QUERY = record(
    {},
    {
        "in_tree": lists.UUIDS,
        "member_of": STRING,
        "required": STRING,
        "resource_class": lists.CLASSES,
        "by": {"type": "string", "enum": [kind.value for kind in By]},
        "mix": STRING,
    }
    | lists.PARAMETERS,
)

QUERY = Versioned(_QUERY)


class TotalsBody(QuestionBody):
    """Assumptions of sums."""

    given: Assumptions


SUMS = mapping(
    ".*",
    record(
        {field.name: INTEGER for field in fields(ClassTotals)},
        {"held": INTEGER, "stranded": INTEGER},
    ),
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

GIVEN_TOTALS = Answer(body=record(_REQUIRED, _OPTIONAL | {"given": ASSUMED}), dated=False)
"""The response for the inventory as it would be."""
