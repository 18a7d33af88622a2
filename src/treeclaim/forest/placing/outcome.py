# SPDX-License-Identifier: Apache-2.0
"""What placing came to, as a document that passes from a child to its parent."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from treeclaim.model.extension.placing import Placement


@dataclass(frozen=True, slots=True)
class Outcome:
    """What placing came to.

    Attributes:
        placed: Who has a place, by consumer.
        unplaced: Who has not, in the order of the call.
        explanation: Why the first of them found nothing, if that was asked.
        given: What is told of what was taken for granted; None where nothing was.
    """

    placed: Mapping[str, Placement]
    unplaced: tuple[str, ...]
    explanation: Mapping[str, Any] | None
    given: Mapping[str, Any] | None = None

    def written(self) -> bytes:
        """Write it down."""
        return orjson.dumps(
            {
                "placed": [
                    [
                        placement.consumer,
                        placement.alternative,
                        placement.allocations,
                        placement.mappings,
                        placement.dropped,
                        placement.roots,
                    ]
                    for placement in self.placed.values()
                ],
                "unplaced": self.unplaced,
                # A text in the text: amounts in it may have more digits than this reader keeps.
                "explanation": None
                if self.explanation is None
                else orjson.dumps(self.explanation).decode(),
            }
        )

    @classmethod
    def read(cls, document: bytes) -> "Outcome":
        """Read what was written."""
        members = orjson.loads(document)
        placed = [
            Placement(
                consumer,
                alternative,
                allocations,
                mappings,
                tuple(dropped),
                tuple((uuid, name) for uuid, name in roots),
            )
            for consumer, alternative, allocations, mappings, dropped, roots in members["placed"]
        ]
        return cls(
            {placement.consumer: placement for placement in placed},
            tuple(members["unplaced"]),
            None if members["explanation"] is None else json.loads(members["explanation"]),
            members.get("given"),
        )
