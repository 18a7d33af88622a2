# SPDX-License-Identifier: Apache-2.0
"""The writers of a provider's parts, and the rules by which a URL of one provider differs from a batch.

A batch names several parts of many providers, a URL one part of one provider: each part has one
writer, which finds, judges and writes the part for all providers of a call.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

from treeclaim.model.extension.batches import targets
from treeclaim.model.extension.batches.batch import (
    MOST_PROBLEMS,
    BatchEntry,
    BatchRefusedError,
    Problem,
)
from treeclaim.model.inventory import Inventory
from treeclaim.model.parts import INVENTORIES, PARTS, Part, ProviderPart
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    raise_generations,
    require_generation,
)
from treeclaim.store.operations.providers.consumption import lock_with_consumed

Target = targets.Target[LockedProvider]
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
    """Rules of a URL; the defaults are those of a batch (contract page 99, section 8).

    Attributes:
        raises: When the generation increases.
        least_capacity: Least capacity of an inventory; None for any.
        classes: Which inventories are concerned.
        rewrites_equal: Whether an equal inventory, name or parent gets a new time of its last update.
        may_reparent: Whether a provider with a parent may get another one, or none.
    """

    raises: Raises = Raises.IF_CHANGED
    least_capacity: int | None = 0
    classes: Classes = Classes.ALL
    rewrites_equal: bool = False
    may_reparent: bool = True


class PartWriter:
    """Writes one part of the providers of a call.

    The methods are called in the order in which they are defined, each for all parts. Nothing is
    written if there is a problem.

    Attributes:
        part: The part.
    """

    part: ClassVar[ProviderPart[Any]]

    def __init__(
        self,
        transaction: WriteTransaction,
        every_target: Sequence[Target],
        rules: WriteRules = WriteRules(),
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

    @property
    def generation(self) -> int:
        """Return the generation of the only provider of a call."""
        (target,) = self._every_target
        return target.row.generation

    def create_names(self) -> None:
        """Create missing custom names."""

    def look_up(self, problems: list[Problem]) -> None:
        """Look up the ids of names; add a problem for each missing name."""

    def judge(self, problems: list[Problem]) -> None:
        """Add a problem for each value that is against a rule; the providers have their new parents."""

    def write(self) -> None:
        """Write the differences, and add the part to `changed` of each target that differs."""
        raise NotImplementedError

    def check(self, problems: list[Problem]) -> None:
        """Add a problem for each rule that the written rows break."""


Writer = TypeVar("Writer", bound=PartWriter)


def write_part(
    transaction: WriteTransaction,
    writer_class: type[Writer],
    provider_uuid: str,
    value: Any,
    generation: int | None = None,
    *,
    rules: WriteRules = WriteRules(),
) -> Writer:
    """Write a part of one provider; return its writer.

    Args:
        transaction: The transaction.
        writer_class: Writer of the part.
        provider_uuid: UUID of the provider.
        value: As in `BatchEntry.values`.
        generation: Generation that the client expects; None compares nothing.
        rules: Rules of the URL.

    Raises:
        ProviderNotFoundError: if there is no such provider.
        ProviderGenerationConflictError: if the generation differs.
        TreeclaimError: The first problem of the value.
    """
    entry = BatchEntry(provider_uuid, None, values={writer_class.part.name: value})
    provider = lock_with_consumed(transaction, provider_uuid, list(inventories_in([entry])))
    if generation is not None:
        require_generation(provider, generation)
    target = Target(0, entry, provider_uuid, provider, is_new=False)
    writer = writer_class(transaction, [target], rules)
    problems: list[Problem] = []
    writer.look_up(problems)
    raise_first(problems)
    writer.judge(problems)
    raise_first(problems)
    writer.write()
    writer.check(problems)
    raise_first(problems)
    raise_changed(transaction, [target], rules)
    return writer


def inventories_in(entries: Sequence[BatchEntry]) -> Iterator[Inventory]:
    """Yield the inventories of entries."""
    for entry in entries:
        for inventory in entry.values.get(INVENTORIES.name, {}).values():
            if inventory is not None:
                yield inventory


def raise_first(problems: Sequence[Problem]) -> None:
    """Raise the error of the first problem, if there is one."""
    if problems:
        raise problems[0].error


def raise_all(problems: list[Problem]) -> None:
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
