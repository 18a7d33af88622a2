# SPDX-License-Identifier: Apache-2.0
"""Which provider each entry of a batch is about, locked where it exists."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import sqlalchemy as sa

from treeclaim.model.errors import (
    DuplicateProviderError,
    ProviderGenerationConflictError,
    TreeclaimError,
)
from treeclaim.model.extension.batch import (
    BatchEntry,
    NamelessError,
    Problem,
    RepeatedProviderError,
    UnknownNameError,
)
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.operations.locks.provider_rows import LockedProvider, lock_providers
from treeclaim.store.schema.tables import resource_providers

_NAMED = sa.select(resource_providers.c.uuid, resource_providers.c.name).where(
    resource_providers.c.name.in_(sa.bindparam("names", expanding=True))
)


@dataclass(slots=True)
class Target:
    """An entry and the provider that it is about.

    Attributes:
        index: Which entry.
        entry: What is to be.
        uuid: Of the provider.
        provider: Its locked row; None until it is created.
        is_new: Whether this batch creates it.
        changed: Names of the members that are different afterwards.
    """

    index: int
    entry: BatchEntry
    uuid: str
    provider: LockedProvider | None
    is_new: bool
    changed: list[str] = field(default_factory=list)

    @property
    def is_renamed(self) -> bool:
        """Tell whether a provider that was there gets another name; False once it has it."""
        return self.entry.name is not None and self.entry.name != self.row.name

    @property
    def final_name(self) -> str | None:
        """Return the name in the end, None if there is none."""
        there = None if self.provider is None else self.provider.name
        return there if self.entry.name is None else self.entry.name

    @property
    def row(self) -> LockedProvider:
        """Return the locked row of a provider that exists by now."""
        if self.provider is None:
            raise RuntimeError("the provider was not created yet")
        return self.provider


def targets_of(
    transaction: WriteTransaction, entries: Sequence[BatchEntry], problems: list[Problem]
) -> list[Target]:
    """Find and lock the providers of all entries; record every fault.

    What an entry is about is judged by what was there before the call, and names by who has them in
    the end.

    Returns:
        Those without a fault.
    """
    holders = _holders(transaction, [entry.name for entry in entries if entry.name is not None])
    uuids = [_uuid_of(entry, holders) for entry in entries]
    rows = _locked(transaction, [uuid for uuid in uuids if uuid is not None])
    found: list[Target] = []
    first: dict[str, int] = {}
    for index, (entry, uuid) in enumerate(zip(entries, uuids, strict=True)):
        if uuid is None:
            problems.append(Problem(index, UnknownNameError(entry.name or "")))
        elif first.setdefault(uuid, index) != index:
            problems.append(Problem(index, RepeatedProviderError(first[uuid])))
        else:
            found.append(Target(index, entry, uuid, rows.get(uuid), uuid not in rows))
    taken = _taken_names(found, holders)
    sound = []
    for target in found:
        error = _wrong(target, taken)
        if error is None:
            sound.append(target)
        else:
            problems.append(Problem(target.index, error))
    return sound


def _taken_names(targets: Sequence[Target], holders: Mapping[str, str]) -> set[str]:
    """Return the names that more than one provider would have in the end."""
    ending = Counter(target.final_name for target in targets)
    mine = {target.uuid for target in targets}
    ending.update(name for name, uuid in holders.items() if uuid not in mine)
    return {name for name, count in ending.items() if name is not None and count > 1}


def _holders(transaction: ReadTransaction, names: Sequence[str]) -> dict[str, str]:
    """Return the uuids of the providers that have some names, by name."""
    return {
        row.name: row.uuid
        for chunk in chunks(sorted(set(names)))
        for row in transaction.rows(_NAMED, names=chunk)
    }


def _uuid_of(entry: BatchEntry, holders: Mapping[str, str]) -> str | None:
    return holders.get(entry.name or "") if entry.uuid is None else entry.uuid


def _locked(transaction: WriteTransaction, uuids: Sequence[str]) -> dict[str, LockedProvider]:
    """Lock providers in order of their ids, as all writes do."""
    # All in one statement: of two, the second might wait for what comes before the first.
    return {row.uuid: row for row in lock_providers(transaction, set(uuids))}


def _wrong(target: Target, taken: AbstractSet[str]) -> TreeclaimError | None:
    """Return what is wrong with an entry by itself, None if nothing."""
    entry = target.entry
    # Who has a name already is not at fault.
    if entry.name in taken and (target.is_new or target.is_renamed):
        return DuplicateProviderError(name=entry.name)
    if target.provider is None and entry.name is None:
        return NamelessError(target.uuid)
    actual = None if target.provider is None else target.provider.generation
    if entry.generation is not None and entry.generation != actual:
        return ProviderGenerationConflictError(target.uuid, actual=actual, given=entry.generation)
    return None
