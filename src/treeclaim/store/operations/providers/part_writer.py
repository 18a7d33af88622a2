# SPDX-License-Identifier: Apache-2.0
"""The writers of a provider's parts, and the rules by which a URL of one provider differs from a batch.

A batch names several parts of many providers, a URL one part of one provider: each part has one
writer, which finds, judges and writes the part for all providers of a call.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from treeclaim.model.extension.batches import batch
from treeclaim.model.extension.batches.batch import (
    MOST_PROBLEMS,
    BatchEntry,
    BatchRefusedError,
    EntryFault,
)
from treeclaim.model.inventory import Inventory
from treeclaim.model.parts import INVENTORIES, PARTS, Part, ProviderPart
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    raise_generations,
)

Target = batch.Target[LockedProvider]
"""An entry and its provider."""

AT_ONCE = 100
"""Providers whose part is read by one statement. Each may have hundreds of rows, and the deadline is
checked between statements."""

_FEED_PARTS = {part.name: int(part.told) for part in PARTS}


class Raises(Enum):
    """Rule by which a write increases the generation of a provider."""

    IF_CHANGED = "if changed"
    ALWAYS = "always"
    NEVER = "never"


class Classes(Enum):
    """The inventories of a provider that a write concerns."""

    ALL = "all"
    """All: those that it does not name are deleted."""
    MISSING = "missing"
    """The named inventories, which must not exist."""
    PRESENT = "present"
    """The named inventories, which must exist."""


@dataclass(frozen=True, slots=True)
class WriteRules:
    """Rules by which a URL of one provider differs from a batch (contract page 99, section 8).

    Attributes:
        raises: When the generation increases.
        least_capacity: Least capacity of an inventory; None for any.
        classes: Which inventories are concerned.
        rewrites_equal: Whether an equal inventory, name or parent gets a new time of its last update.
        may_reparent: Whether a provider with a parent may get another one, or none.
        is_batch: Whether all problems are reported together, instead of the first one.
    """

    raises: Raises = Raises.IF_CHANGED
    least_capacity: int | None = 0
    classes: Classes = Classes.ALL
    rewrites_equal: bool = False
    may_reparent: bool = True
    is_batch: bool = False


class PartWriter:
    """Writes one part of the providers of a call.

    The methods are called in the order in which they are defined, each for all parts. Nothing is
    written if there is a problem.

    Attributes:
        part: The part.
        modified_at: Last change of a trait that the entries name, in seconds since the epoch; 0 if it is
            not known.
    """

    part: ClassVar[ProviderPart[Any]]
    modified_at = 0.0

    def __init__(
        self,
        transaction: WriteTransaction,
        every_target: Sequence[Target],
        rules: WriteRules,
    ) -> None:
        self._transaction = transaction
        self._rules = rules
        self._every_target = every_target
        self._targets = [
            target for target in every_target if self.part.name in target.entry.values
        ]
        self._names = {name for target in self._targets for name in self._value(target)}

    def _value(self, target: Target) -> Any:
        return target.entry.values[self.part.name]

    def create_names(self) -> None:
        """Create missing custom names."""

    def look_up(self, problems: list[EntryFault]) -> None:
        """Look up the ids of names; add a problem for each missing name."""

    def judge(self, problems: list[EntryFault]) -> None:
        """Add a problem for each value that is against a rule; the providers have their new parents."""

    def write(self) -> None:
        """Write the differences, and add the part to `changed` of each target that differs."""
        raise NotImplementedError

    def check(self, problems: list[EntryFault], moved: Collection[int]) -> None:
        """Add a problem for each rule that the written rows break.

        Args:
            problems: Where problems are added.
            moved: Ids of the providers that the call has moved, those below them included.
        """


def inventories_in(entries: Sequence[BatchEntry]) -> Iterator[Inventory]:
    """Yield the inventories of entries."""
    for entry in entries:
        for inventory in entry.values.get(INVENTORIES.name, {}).values():
            if inventory is not None:
                yield inventory


def raise_first(problems: Sequence[EntryFault]) -> None:
    """Raise the error of the first problem, if there is one."""
    if problems:
        raise problems[0].error


def raise_all(problems: list[EntryFault]) -> None:
    """Raise `BatchRefusedError` with the problems in the order of their entries, if there are any."""
    if problems:
        problems.sort(key=lambda problem: problem.index)
        raise BatchRefusedError(problems[:MOST_PROBLEMS])


def raise_changed(
    transaction: WriteTransaction, every_target: Sequence[Target], rules: WriteRules
) -> None:
    """Record the written parts for the feed, and raise the generations as the rules require.

    Raises:
        RetryTransactionError: if another transaction has raised one since the row was locked.
    """
    raised = []
    for target in every_target:
        names = target.changed if rules.raises is Raises.IF_CHANGED else target.entry.values
        parts = 0
        for name in names:
            parts |= _FEED_PARTS.get(name, 0)
        if parts:
            transaction.touch_providers([target.row.id], Part(parts))
            raised.append(target.row)
    if rules.raises is not Raises.NEVER:
        raise_generations(transaction, raised, {provider.id: 1 for provider in raised})
