# SPDX-License-Identifier: Apache-2.0
"""A candidate in which several providers give one amount, and its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from treeclaim.forest.question.plan import Plan
from treeclaim.model.request import NO_GROUP

_CANDIDATE_BYTES = 400
_PART_BYTES = 200
"""Memory that is counted for a candidate, and for each part of its divisions."""


@dataclass(frozen=True, slots=True)
class SplitCandidate:
    """A candidate with divisions.

    Attributes:
        chosen: Rows of providers by slot.
        parts: Class, row and units of each part of a division.
    """

    chosen: tuple[int, ...]
    parts: tuple[tuple[str, int, int], ...]

    @property
    def nbytes(self) -> int:
        """Return the memory that is counted for it."""
        return _CANDIDATE_BYTES + _PART_BYTES * len(self.parts)

    def positions(self, plan: Plan) -> list[int]:
        """Return the providers that give something."""
        giving = [
            position
            for slot, position in zip(plan.slots, self.chosen, strict=True)
            if slot.resources
        ]
        return [*giving, *(position for _, position, _ in self.parts)]

    def written(self, plan: Plan, uuids: Mapping[int, str]) -> bytes:
        """Write the candidate as microversion 1.39 shows it, given the uuids by row."""
        allocations: dict[str, dict[str, dict[str, int]]] = {}
        mappings: dict[str, dict[str, None]] = {}
        shares = [
            (slot.suffix, position, slot.resources)
            for slot, position in zip(plan.slots, self.chosen, strict=True)
        ]
        shares += [(NO_GROUP, position, {name: units}) for name, position, units in self.parts]
        for suffix, position, resources in shares:
            mappings.setdefault(suffix, {})[uuids[position]] = None
            for name, units in resources.items():
                amounts = allocations.setdefault(uuids[position], {"resources": {}})["resources"]
                amounts[name] = amounts.get(name, 0) + units
        document = {
            "allocations": allocations,
            "mappings": {suffix: list(providers) for suffix, providers in mappings.items()},
        }
        return orjson.dumps(document)
