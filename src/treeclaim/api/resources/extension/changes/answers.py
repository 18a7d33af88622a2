# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/changes answers."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import INTEGER, STRING, record
from treeclaim.model.parts import Part

_PARTS = [part.word for part in Part]

CHANGE = record(
    {"uuid": STRING},
    {
        "generation": INTEGER,
        "what": {"type": "array", "items": {"type": "string", "enum": _PARTS}},
        "deleted": {"type": "boolean"},
    },
)
"""A provider that changed, with `generation` and `what`, or one that is gone, with `deleted`."""

CHANGES = Answer(
    body=record(
        {
            "changes": {"type": "array", "items": CHANGE},
            "catalogue": {"type": "boolean"},
            "cursor": STRING,
        }
    )
)
"""What changed since a cursor."""
