# SPDX-License-Identifier: Apache-2.0
"""What holds have, and a Forest in which that is free (contract page 100, section 2).

Every stage of a search reads what is used, and what is free, from the same two columns. So whatever
counts as free is subtracted there, in a copy of the columns concerned; the texts of summaries stay
those of the Forest itself, and show it as used.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from treeclaim.forest.bounds.budget import Budget
from treeclaim.model.request import CandidateRequest

if TYPE_CHECKING:
    from treeclaim.forest.table.forest import Forest

Holdings = Mapping[str, Mapping[str, int]]
"""Amounts by provider uuid and resource class."""


@dataclass(frozen=True, slots=True)
class Held:
    """What holds have at the Forest's moment, as far as a question asks for it.

    Attributes:
        by_hold: What each of the named holds has, those that have something.
        everywhere: What all holds have together; None where that is not asked for.
    """

    by_hold: Mapping[str, Holdings] = field(default_factory=dict)
    everywhere: Holdings | None = None

    def but(self, names: Iterable[str]) -> Holdings:
        """Return what all holds but some have together; what they have not is left out."""
        left = {uuid: dict(amounts) for uuid, amounts in (self.everywhere or {}).items()}
        for name in names:
            for uuid, amounts in self.by_hold.get(name, {}).items():
                for resource_class, amount in amounts.items():
                    if uuid in left and resource_class in left[uuid]:
                        left[uuid][resource_class] -= amount
        return {
            uuid: {name: amount for name, amount in amounts.items() if amount > 0}
            for uuid, amounts in left.items()
        }


NOTHING_HELD = Held()
"""There are no holds, or nobody asks for them."""


def freed(
    forest: "Forest", request: CandidateRequest, budget: Budget
) -> tuple["Forest", CandidateRequest]:
    """Return a Forest in which what the holds of a request have is free, and the request without them."""
    if not request.from_holds:
        return forest, request
    parts = [forest.held.by_hold.get(name, {}) for name in request.from_holds]
    return with_free(forest, parts, budget), replace(request, from_holds=())


def with_free(forest: "Forest", parts: Iterable[Holdings], budget: Budget) -> "Forest":
    """Return a Forest in which some of what is used is free, to be searched at once.

    What it has no inventory for is overlooked.
    """
    forest.prepare()
    other = copy.copy(forest)
    other.classes = dict(forest.classes)
    for part in parts:
        for uuid, amounts in part.items():
            budget.check()
            row = forest.row_of(uuid)
            indices = {} if row is None else dict(forest.inventory_indices(row))
            for name, amount in amounts.items():
                entry = forest.catalogue.resource_classes.get(name)
                if entry is None or entry.id not in indices:
                    continue
                if other.classes[entry.id] is forest.classes[entry.id]:
                    other.classes[entry.id] = forest.classes[entry.id].changeable()
                other.classes[entry.id].use(indices[entry.id], -amount)
    return other
