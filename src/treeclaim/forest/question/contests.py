# SPDX-License-Identifier: Apache-2.0
"""Slots that compete: for providers of their own, or for what there is of a class."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treeclaim.forest.question.wants import Want
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class Contest:
    """Slots that compete.

    Attributes:
        slots: At least two.
        resource_class: What they share; None where each needs a provider of its own.
        least: The smallest amount asked for (1 without a class).
        total: The sum of the amounts.
    """

    slots: tuple[int, ...]
    resource_class: str | None
    least: int
    total: int


def contests_of(
    wants: Sequence[Want], request: CandidateRequest, slots: Sequence[int]
) -> tuple[Contest, ...]:
    """Find out which of some slots compete."""
    contests = []
    alone = tuple(slot for slot in slots if wants[slot].suffix in request.isolated)
    if len(alone) > 1:
        contests.append(Contest(alone, None, 1, len(alone)))
    if not request.sums_groups:
        return tuple(contests)
    for name in dict.fromkeys(name for slot in slots for name in wants[slot].resources):
        sharing = tuple(slot for slot in slots if name in wants[slot].resources)
        contests += _contest_for(wants, name, sharing)
    return tuple(contests)


def _contest_for(wants: Sequence[Want], name: str, slots: tuple[int, ...]) -> list[Contest]:
    """Return the contest of some slots for a class, none if there are not two."""
    amounts = [wants[slot].resources[name] for slot in slots]
    return [Contest(slots, name, min(amounts), sum(amounts))] if len(slots) > 1 else []


def relieved(
    wants: Sequence[Want], contests: Iterable[Contest], idle: frozenset[tuple[int, str]]
) -> tuple[Contest, ...]:
    """Return contests without the slots that do not compete for the class."""
    left: list[Contest] = []
    for contest in contests:
        name = contest.resource_class
        if name is None:
            left.append(contest)
        else:
            slots = tuple(slot for slot in contest.slots if (slot, name) not in idle)
            left += _contest_for(wants, name, slots)
    return tuple(left)
