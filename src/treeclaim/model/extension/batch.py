# SPDX-License-Identifier: Apache-2.0
"""A batch: many providers brought to a state in one transaction (contract page 99, section 8).

Its entries, the provider of each, and the faults of both; no I/O.
"""

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
from treeclaim.model.parts import Values

MOST_PROBLEMS = 100
"""Problems that one response reports (contract page 99, section 8)."""


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """The wanted state of one provider.

    Attributes:
        uuid: Normalised; None where the name identifies the provider.
        name: Its name; None to keep it.
        parent: Uuid of its parent, None for none.
        generation: The generation that the client sent; None to compare nothing.
        values: New values of the parts to be replaced, by name; an `Inventory` by class name, others as
            `ProviderPart.read` returns them.
    """

    uuid: str | None
    name: str | None
    parent: str | Omission | None = Omission.OMITTED
    generation: int | None = None
    values: Values = field(default_factory=dict)


class BatchResult(StrEnum):
    """The result of an entry."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class EntryOutcome:
    """The outcome of one entry, in the order of the answer.

    Attributes:
        uuid: UUID of the provider.
        generation: The new generation.
        result: The outcome.
        changed: Names of the members that have changed.
    """

    uuid: str
    generation: int
    result: BatchResult
    changed: Sequence[str]


@dataclass(frozen=True, slots=True)
class EntryFault:
    """A fault of an entry.

    Attributes:
        index: Position of the entry.
        error: The fault.
    """

    index: int
    error: TreeclaimError


class BatchRefusedError(TreeclaimError):
    """Entries are faulty; nothing was done."""

    problems: Sequence[EntryFault]

    def __str__(self) -> str:
        """List the faults, one a line."""
        return "\n".join(
            f"providers[{problem.index}]: {problem.error}" for problem in self.problems
        )


class BatchForbiddenError(TreeclaimError):
    """The batch would do something that the policy does not allow its caller."""

    message = "Policy does not allow {rule} to be performed."
    rule: str


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
    """An entry and its provider.

    Attributes:
        index: Position of the entry.
        entry: The entry.
        uuid: UUID of the provider.
        provider: Its state before the batch; None until it is created.
        is_new: Whether this batch creates it.
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
        """Return whether an existing provider gets another name; False once it has it."""
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


def find_uuids(entries: Sequence[BatchEntry], holders: Mapping[str, str]) -> list[str | None]:
    """Return the provider that each entry is about; None where no provider has its name.

    Args:
        entries: The entries of the batch.
        holders: Uuids of the providers that have some of the names, by name.
    """
    return [
        holders.get(entry.name or "") if entry.uuid is None else entry.uuid for entry in entries
    ]


def find_sound_targets(
    entries: Sequence[BatchEntry],
    holders: Mapping[str, str],
    rows: Mapping[str, Row],
    problems: list[EntryFault],
) -> list[Target[Row]]:
    """Return the entries without a fault, with their providers; record every fault.

    The provider of an entry is found by the state before the call; names are judged by the state after
    it.

    Args:
        entries: The entries of the batch.
        holders: Uuids of the providers that have some of the names, by name.
        rows: Rows of the existing providers, by uuid.
        problems: Receives the faults.
    """
    candidate_targets: list[Target[Row]] = []
    first: dict[str, int] = {}
    for index, (entry, uuid) in enumerate(zip(entries, find_uuids(entries, holders), strict=True)):
        if uuid is None:
            text = f"No resource provider with name {entry.name} found; a new one needs a uuid."
            problems.append(EntryFault(index, InvalidValueError(text)))
        elif first.setdefault(uuid, index) != index:
            text = f"It is the same provider as providers[{first[uuid]}]."
            problems.append(EntryFault(index, InvalidValueError(text)))
        else:
            candidate_targets.append(Target(index, entry, uuid, rows.get(uuid), uuid not in rows))
    taken_names = _taken_names(candidate_targets, holders)
    sound = []
    for target in candidate_targets:
        error = _wrong(target, taken_names)
        if error is None:
            sound.append(target)
        else:
            problems.append(EntryFault(target.index, error))
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
    # A provider may keep its own name.
    if entry.name in taken_names and (target.is_new or target.is_renamed):
        return DuplicateProviderError(name=entry.name)
    if target.provider is None and entry.name is None:
        return InvalidValueError(
            f"A resource provider's name is required: {target.uuid} does not exist."
        )
    actual = None if target.provider is None else target.provider.generation
    if entry.generation is not None and entry.generation != actual:
        return ProviderGenerationConflictError(target.uuid, actual=actual, given=entry.generation)
    return None
