# SPDX-License-Identifier: Apache-2.0
"""Changes that the store sends to a Forest: everything, or the changes since a cursor, and names.

The text of a cursor is short, URL-safe and opaque (contract page 99).
"""

import base64
import binascii
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from treeclaim.model.names import CUSTOM_PREFIX
from treeclaim.model.provider import ProviderRecord

if TYPE_CHECKING:
    # Its arrays are numpy's, which takes 14 MB; processes without a Forest do without.
    from treeclaim.model.whole import WholeInventory


class Cursor(NamedTuple):
    """A reader's position in the change feed (decision 0002).

    Attributes:
        positions: The number of the last commit in each shard.
        tokens: The token of each of these commits.
    """

    positions: tuple[int, ...]
    tokens: tuple[int, ...]


LONGEST_CURSOR = 4_096
"""Characters that the text of a cursor may have (contract page 99, section 4)."""

_CURSOR_FORM = 4
"""The first byte of a text; another form gets another number."""

_NUMBER = struct.Struct(">Q")


class UnreadableCursorError(ValueError):
    """The text is not a cursor of this program."""


def write_cursor(cursor: Cursor) -> str:
    """Write a cursor: a byte for the form, then all positions, then all tokens."""
    numbers = [_NUMBER.pack(number) for number in (*cursor.positions, *cursor.tokens)]
    content = bytes([_CURSOR_FORM]) + b"".join(numbers)
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def read_cursor(text: str) -> Cursor:
    """Read what `write_cursor` wrote.

    Raises:
        UnreadableCursorError: for any other text.
    """
    if len(text) > LONGEST_CURSOR or not text.isascii():
        raise UnreadableCursorError
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise UnreadableCursorError from error
    if content[:1] != bytes([_CURSOR_FORM]) or len(content) % (2 * _NUMBER.size) != 1:
        raise UnreadableCursorError
    numbers = [number for (number,) in _NUMBER.iter_unpack(content[1:])]
    if max(numbers, default=0) >> 63:
        raise UnreadableCursorError
    half = len(numbers) // 2
    return Cursor(tuple(numbers[:half]), tuple(numbers[half:]))


@dataclass(frozen=True, slots=True)
class UsageChange:
    """The change of a provider's usage and generation by claims (decision 0002).

    Attributes:
        used: Units more in use than before, by id of the class; less than zero for fewer.
        steps: By how much the generation was raised.
        generation: As it was raised to; 0 where it was not.
        modified_at: When it was raised, in seconds since the epoch; without meaning where it was not.
    """

    used: Mapping[int, int]
    steps: int
    generation: int
    modified_at: float

    def and_also(self, other: "UsageChange") -> "UsageChange":
        """Return two changes of one provider as one; their order makes no difference."""
        used = Counter(self.used)
        used.update(other.used)
        last = max(self, other, key=lambda change: change.generation)
        return UsageChange(used, self.steps + other.steps, last.generation, last.modified_at)


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A trait or resource class.

    Attributes:
        id: The row's id in the database.
        name: The name in the API.
        modified_at: Last update (or creation), in seconds since the epoch; None if unknown.
    """

    id: int
    name: str
    modified_at: float | None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All traits and resource classes, by name and by id.

    Traits are in catalogue order: standard before custom ones, each in order of creation
    (contract page 90, section 5.2). Resource classes are in order of id.
    """

    traits: dict[str, CatalogueEntry]
    resource_classes: dict[str, CatalogueEntry]
    trait_by_id: dict[int, CatalogueEntry] = field(repr=False)
    class_by_id: dict[int, CatalogueEntry] = field(repr=False)
    trait_rank: dict[int, int] = field(repr=False)

    @classmethod
    def of(
        cls, traits: Iterable[CatalogueEntry], resource_classes: Iterable[CatalogueEntry]
    ) -> "Catalogue":
        """Build a catalogue from entries in any order."""
        ordered = sorted(
            traits, key=lambda entry: (entry.name.startswith(CUSTOM_PREFIX), entry.id)
        )
        classes = sorted(resource_classes, key=lambda entry: entry.id)
        return cls(
            traits={entry.name: entry for entry in ordered},
            resource_classes={entry.name: entry for entry in classes},
            trait_by_id={entry.id: entry for entry in ordered},
            class_by_id={entry.id: entry for entry in classes},
            trait_rank={entry.id: rank for rank, entry in enumerate(ordered)},
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """A consistent snapshot of everything committed after a cursor.

    Attributes:
        cursor: Pass this the next time.
        complete: True where this is the whole inventory and replaces all earlier state.
        records: Providers as they are now, each as a whole.
        removed: Ids of providers that are gone (or never came to be).
        catalogue: All traits and resource classes if any of them changed, else None.
        usage: Changes that claims made to providers that are not in `records`, by their ids.
        whole: The whole inventory, instead of `records`, in the form that the store loads.
    """

    cursor: Cursor
    complete: bool = False
    records: Sequence[ProviderRecord] = ()
    removed: Sequence[int] = ()
    catalogue: Catalogue | None = None
    usage: Mapping[int, UsageChange] = field(default_factory=dict)
    whole: "WholeInventory | None" = None
