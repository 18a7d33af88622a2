# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers of contract page 98, sections 3 to 5."""

from http import HTTPStatus

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
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.candidates import answers as candidates
from treeclaim.api.resources.planning.given import TOLD

_INTEGER_OR_NULL: Schema = {"type": ["integer", "null"]}
_FOUND: Schema = candidates.CANDIDATES.body or {}

ALTERNATIVES = Answer(
    body=_FOUND
    | {
        "properties": _FOUND["properties"]
        | {
            "alternative": _INTEGER_OR_NULL,
            "scores": {"type": "array", "items": {"type": "number"}},
            "given": TOLD,
        },
        "required": ["alternative", *_FOUND["required"]],
    }
)
"""The candidates of the first query that has any."""

_PLACED = record(
    {
        "placements": {
            "type": "array",
            "items": record(
                {
                    "consumer": STRING,
                    "alternative": INTEGER,
                    "root_providers": {
                        "type": "array",
                        "items": record({"uuid": STRING, "name": STRING}),
                    },
                    "allocations": mapping(".*", record({"resources": AMOUNTS})),
                    "mappings": {"type": ["object", "null"]},
                    "dropped": {"type": "array", "items": INTEGER},
                    "consumer_generation": _INTEGER_OR_NULL,
                }
            ),
        },
        "unplaced": STRINGS,
    },
    {"explanation": candidates.EXPLANATION.body or {}, "given": TOLD},
)

PLACED = Answer(HTTPStatus.CREATED, body=_PLACED, dated=False)
"""Where consumers were placed."""

NOTHING_WRITTEN = Answer(HTTPStatus.OK, body=_PLACED, dated=False)
"""Where they are already, or would be placed."""

CAPACITY = Answer(
    body=record(
        {
            "capacity": mapping(
                ".*",
                record(
                    {
                        "fits": INTEGER,
                        "at_most": INTEGER,
                        "when_empty": INTEGER,
                        "complete": {"type": "boolean"},
                    },
                    {
                        "domains": {
                            "type": "array",
                            "items": record(
                                {"uuid": STRING, "fits": INTEGER}, {"name": TEXT_OR_NULL}
                            ),
                        }
                    },
                ),
            )
        },
        {"given": TOLD},
    ),
    dated=False,
)
"""How many consumers fit."""
