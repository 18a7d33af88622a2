# SPDX-License-Identifier: Apache-2.0
"""A batch, which writes many providers in one transaction (contract page 99, section 8); no I/O."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from treeclaim.model.claim import Omission
from treeclaim.model.errors import (
    DuplicateProviderError,
    InvalidValueError,
    ProviderGenerationConflictError,
    TreeclaimError,
)
from treeclaim.model.parts import PartValues

MOST_PROBLEMS = 100
"""Most problems in one response (contract page 99, section 8)."""


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """The wanted state of one provider.

    Attributes:
        uuid: Normalised; None if the name identifies the provider.
        name: None to keep the name.
        generation: The expected generation; None for any.
        values: New values of the parts to be replaced, by name: inventories by class, others as `ProviderPart.from_json`
            returns them.
    """

    uuid: str | None
    name: str | None
    parent: str | Omission | None = Omission.OMITTED
    generation: int | None = None
    values: PartValues = field(default_factory=dict)


class BatchResult(StrEnum):
    """The effect of an entry."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class EntryOutcome:
    """The provider of an entry after the batch, with the names of the changed members."""

    uuid: str
    generation: int
    result: BatchResult
    changed: Sequence[str]


@dataclass(frozen=True, slots=True)
class EntryFault:
    """A fault of the entry at a position."""

    index: int
    error: TreeclaimError


class BatchRefusedError(TreeclaimError):
    """Entries are faulty; nothing was changed."""

    problems: Sequence[EntryFault]

    def __str__(self) -> str:
        """Return the faults, one on each line."""
        return "\n".join(
            f"providers[{problem.index}]: {problem.error}" for problem in self.problems
        )


class BatchForbiddenError(TreeclaimError):
    """The policy forbids an operation of the batch."""

    message = "Policy does not allow {rule} to be performed."
    rule: str


class _Row(Protocol):
    @property
    def name(self) -> str | None: ...

    @property
    def generation(self) -> int: ...


Row = TypeVar("Row", bound=_Row)


@dataclass(slots=True)
class Target(Generic[Row]):
    """An entry and its provider.

    Attributes:
        index: Position of the entry.
        provider: The state before the batch; None until the provider is created.
        is_new: Whether the batch creates the provider.
        changed: Names of the members that the batch changes.
    """

    index: int
    entry: BatchEntry
    uuid: str
    provider: Row | None
    is_new: bool
    changed: list[str] = field(default_factory=list)

    @property
    def is_renamed(self) -> bool:
        """Return whether the entry's name differs from that of the existing provider."""
        return self.entry.name is not None and self.entry.name != self.row.name

    @property
    def final_name(self) -> str | None:
        """Return the name after the batch; None if a new provider has none."""
        former_name = None if self.provider is None else self.provider.name
        return former_name if self.entry.name is None else self.entry.name

    @property
    def row(self) -> Row:
        """Return the state of a provider that exists by now."""
        if self.provider is None:
            raise RuntimeError("the provider was not created yet")
        return self.provider


def find_uuids(entries: Sequence[BatchEntry], holders: Mapping[str, str]) -> list[str | None]:
    """Return the provider UUID of each entry, given those of the entries' names; None for an unknown name."""
    return [
        holders.get(entry.name or "") if entry.uuid is None else entry.uuid for entry in entries
    ]


def find_sound_targets(
    entries: Sequence[BatchEntry],
    holders: Mapping[str, str],
    rows: Mapping[str, Row],
    problems: list[EntryFault],
) -> list[Target[Row]]:
    """Return the entries without faults, with their providers.

    An entry is matched to its provider by the state before the call: `holders` has the provider of each name, and `rows`
    the providers by UUID. Names must be unique in the state after the call. `problems` receives the faults.
    """
    candidate_targets: list[Target[Row]] = []
    index_by_uuid: dict[str, int] = {}
    for index, (entry, uuid) in enumerate(zip(entries, find_uuids(entries, holders), strict=True)):
        if uuid is None:
            text = f"No resource provider with name {entry.name} found; a new one needs a uuid."
            problems.append(EntryFault(index, InvalidValueError(text)))
        elif index_by_uuid.setdefault(uuid, index) != index:
            text = f"It is the same provider as providers[{index_by_uuid[uuid]}]."
            problems.append(EntryFault(index, InvalidValueError(text)))
        else:
            candidate_targets.append(Target(index, entry, uuid, rows.get(uuid), uuid not in rows))
    duplicate_names = _find_duplicate_names(candidate_targets, holders)
    sound_targets = []
    for target in candidate_targets:
        error = _find_fault(target, duplicate_names)
        if error is None:
            sound_targets.append(target)
        else:
            problems.append(EntryFault(target.index, error))
    return sound_targets


def _find_duplicate_names(targets: Sequence[Target[Row]], holders: Mapping[str, str]) -> set[str]:
    """Return the names that several providers would have after the batch."""
    final_names = Counter(target.final_name for target in targets)
    target_uuids = {target.uuid for target in targets}
    final_names.update(name for name, uuid in holders.items() if uuid not in target_uuids)
    return {name for name, count in final_names.items() if name is not None and count > 1}


def _find_fault(target: Target[Row], duplicate_names: AbstractSet[str]) -> TreeclaimError | None:
    entry = target.entry
    # A provider may keep its name.
    if entry.name in duplicate_names and (target.is_new or target.is_renamed):
        return DuplicateProviderError(name=entry.name)
    if target.provider is None and entry.name is None:
        return InvalidValueError(
            f"A resource provider's name is required: {target.uuid} does not exist."
        )
    actual = None if target.provider is None else target.provider.generation
    if entry.generation is not None and entry.generation != actual:
        return ProviderGenerationConflictError(target.uuid, actual=actual, given=entry.generation)
    return None
