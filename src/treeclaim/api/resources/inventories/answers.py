# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about inventories (contract page 30)."""

from http import HTTPStatus

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import GENERATION, INTEGER, STRING, mapping, record
from treeclaim.api.protocol.request.wording import Schema

_FIELDS: dict[str, Schema] = {
    **dict.fromkeys(("total", "reserved", "min_unit", "max_unit", "step_size"), INTEGER),
    "allocation_ratio": {"type": "number"},
}
CONSUMED: dict[str, Schema] = {
    "consumes": {
        "type": "array",
        "items": record({"provider": STRING, "resource_class": STRING, "amount": INTEGER}),
    }
}
"""What an inventory consumes, which is shown from 1.4 of the extension on."""

FIELDS = record(_FIELDS, CONSUMED)
"""Of an inventory."""

_INVENTORY = record(_FIELDS | GENERATION, CONSUMED)

INVENTORY = Answer(body=_INVENTORY)
"""An inventory."""

ADDED = Answer(HTTPStatus.CREATED, _INVENTORY, located=True)
"""An inventory that was added."""

INVENTORIES = Answer(body=record(GENERATION | {"inventories": mapping(".*", FIELDS)}))
"""All inventories of a provider."""
