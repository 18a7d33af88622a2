# SPDX-License-Identifier: Apache-2.0
"""A batch: many providers brought to a state in one transaction (contract page 99, section 8)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from treeclaim.model.claim import Omission
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.parts import Values

MOST_PROBLEMS = 100
"""Problems that one response reports (contract page 99, section 8)."""


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """The wanted state of one provider.

    Attributes:
        uuid: Normalised; None where the name says which one is meant.
        name: Its name; None to keep it.
        parent: Uuid of its parent, None for none.
        generation: What the client knows; None to compare nothing.
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
        generation: Afterwards.
        result: What became of it.
        changed: Names of the members that are different now.
    """

    uuid: str
    generation: int
    result: BatchResult
    changed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of an entry.

    Attributes:
        index: Which entry.
        error: What is wrong.
    """

    index: int
    error: TreeclaimError


class BatchRefusedError(TreeclaimError):
    """Entries are faulty; nothing was done."""

    problems: Sequence[Problem]

    def __str__(self) -> str:
        """List the faults, one a line."""
        return "\n".join(
            f"providers[{problem.index}]: {problem.error}" for problem in self.problems
        )


class RepeatedProviderError(TreeclaimError):
    """Two entries name the same provider."""

    message = "It is the same provider as providers[{index}]."
    index: int


class UnknownNameError(TreeclaimError):
    """An entry without a uuid names no provider."""

    message = "No resource provider with name {name} found; a new one needs a uuid."
    name: str


class NamelessError(TreeclaimError):
    """A new provider without a name."""

    message = "A resource provider's name is required: {uuid} does not exist."
    uuid: str


class BatchForbiddenError(TreeclaimError):
    """The batch would do something that the policy does not allow its caller."""

    message = "Policy does not allow {rule} to be performed."
    rule: str
