# SPDX-License-Identifier: Apache-2.0
"""The provider of each entry of a batch (contract page 99, section 8): no I/O."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from treeclaim.model.errors import (
    DuplicateProviderError,
    ProviderGenerationConflictError,
    TreeclaimError,
)
from treeclaim.model.extension.batches.batch import (
    BatchEntry,
    NamelessError,
    Problem,
    RepeatedProviderError,
    UnknownNameError,
)


class _Row(Protocol):
    """A provider that exists."""

    @property
    def name(self) -> str | None:
        """Return its name."""
        ...

    @property
    def generation(self) -> int:
        """Return its generation."""
        ...


Row = TypeVar("Row", bound=_Row)


@dataclass(slots=True)
class Target(Generic[Row]):
    """An entry and the provider that it is about.

    Attributes:
        index: Which entry.
        entry: What is to be.
        uuid: UUID of the provider.
        provider: What is known of it; None until it is created.
        is_new: Whether this batch creates it.
        changed: Names of the members that are different afterwards.
    """

    index: int
    entry: BatchEntry
    uuid: str
    provider: Row | None
    is_new: bool
    changed: list[str] = field(default_factory=list)

    @property
    def is_renamed(self) -> bool:
        """Tell whether a provider that was there gets another name; False once it has it."""
        return self.entry.name is not None and self.entry.name != self.row.name

    @property
    def final_name(self) -> str | None:
        """Return the name in the end, None if there is none."""
        former = None if self.provider is None else self.provider.name
        return former if self.entry.name is None else self.entry.name

    @property
    def row(self) -> Row:
        """Return what is known of a provider that exists by now."""
        if self.provider is None:
            raise RuntimeError("the provider was not created yet")
        return self.provider


def uuids_of(entries: Sequence[BatchEntry], holders: Mapping[str, str]) -> list[str | None]:
    """Return the provider that each entry is about; None where no provider has its name.

    Args:
        entries: What is to be.
        holders: Uuids of the providers that have some of their names, by name.
    """
    return [
        holders.get(entry.name or "") if entry.uuid is None else entry.uuid for entry in entries
    ]


def sound_targets(
    entries: Sequence[BatchEntry],
    holders: Mapping[str, str],
    rows: Mapping[str, Row],
    problems: list[Problem],
) -> list[Target[Row]]:
    """Return the entries without a fault, with their providers; record every fault.

    What an entry is about is judged by what was there before the call, and names by who has them in
    the end.

    Args:
        entries: What is to be.
        holders: Uuids of the providers that have some of their names, by name.
        rows: Those of the providers that exist, by uuid.
        problems: Where faults are recorded.
    """
    candidate_targets: list[Target[Row]] = []
    first: dict[str, int] = {}
    for index, (entry, uuid) in enumerate(zip(entries, uuids_of(entries, holders), strict=True)):
        if uuid is None:
            problems.append(Problem(index, UnknownNameError(entry.name or "")))
        elif first.setdefault(uuid, index) != index:
            problems.append(Problem(index, RepeatedProviderError(first[uuid])))
        else:
            candidate_targets.append(Target(index, entry, uuid, rows.get(uuid), uuid not in rows))
    taken_names = _taken_names(candidate_targets, holders)
    sound = []
    for target in candidate_targets:
        error = _wrong(target, taken_names)
        if error is None:
            sound.append(target)
        else:
            problems.append(Problem(target.index, error))
    return sound


def _taken_names(targets: Sequence[Target[Row]], holders: Mapping[str, str]) -> set[str]:
    """Return the names that more than one provider would have in the end."""
    ending = Counter(target.final_name for target in targets)
    mine = {target.uuid for target in targets}
    ending.update(name for name, uuid in holders.items() if uuid not in mine)
    return {name for name, count in ending.items() if name is not None and count > 1}


def _wrong(target: Target[Row], taken_names: AbstractSet[str]) -> TreeclaimError | None:
    """Return what is wrong with an entry by itself, None if nothing."""
    entry = target.entry
    # Who has a name already is not at fault.
    if entry.name in taken_names and (target.is_new or target.is_renamed):
        return DuplicateProviderError(name=entry.name)
    if target.provider is None and entry.name is None:
        return NamelessError(target.uuid)
    actual = None if target.provider is None else target.provider.generation
    if entry.generation is not None and entry.generation != actual:
        return ProviderGenerationConflictError(target.uuid, actual=actual, given=entry.generation)
    return None
