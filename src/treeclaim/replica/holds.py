# SPDX-License-Identifier: Apache-2.0
"""What questions ask about holds, and how it is read beside the Forest (contract page 100, section 2).

What holds have is not in the Forest. It is read for the few questions that ask for it, in the snapshot
to which the Forest is brought before they are answered, and so of the same moment as what is used: a
draw that were seen in one of them alone would let room count twice, or not at all. As the snapshot is
taken after the question came, it shows all that was committed before.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from treeclaim.forest.table.held import Held, HeldColumns
from treeclaim.model.request import CandidateRequest
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.held import held_everywhere
from treeclaim.store.reading.holds import held_by


@dataclass(frozen=True, slots=True)
class HeldAsked:
    """What a question asks about holds.

    Attributes:
        named: Uuids of the holds from which it may draw.
        everywhere: Whether it asks for what all holds have together.
    """

    named: frozenset[str] = frozenset()
    everywhere: bool = False

    @classmethod
    def of(cls, requests: Iterable[CandidateRequest], *, everywhere: bool = False) -> "HeldAsked":
        """Return what some requests ask for."""
        named = frozenset[str]().union(*(request.from_holds for request in requests))
        return cls(named, everywhere)

    def __bool__(self) -> bool:
        """Tell whether it asks for anything."""
        return bool(self.named) or self.everywhere

    def read(self, transaction: ReadTransaction) -> Held:
        """Read what is asked for."""
        by_hold = held_by(transaction, sorted(self.named)) if self.named else {}
        everywhere = HeldColumns.of(held_everywhere(transaction)) if self.everywhere else None
        return Held(by_hold, everywhere)


NO_HOLDS = HeldAsked()
"""Asks for nothing."""
