# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about inventories (contract page 30)."""

from http import HTTPStatus

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import GENERATION, INTEGER, mapping, record
from treeclaim.api.protocol.request.wording import Schema

_FIELDS: dict[str, Schema] = {
    **dict.fromkeys(("total", "reserved", "min_unit", "max_unit", "step_size"), INTEGER),
    "allocation_ratio": {"type": "number"},
}
_INVENTORY = record(_FIELDS | GENERATION)

INVENTORY = Answer(body=_INVENTORY)
"""An inventory."""

ADDED = Answer(HTTPStatus.CREATED, _INVENTORY, located=True)
"""An inventory that was added."""

INVENTORIES = Answer(body=record(GENERATION | {"inventories": mapping(".*", record(_FIELDS))}))
"""All inventories of a provider."""
