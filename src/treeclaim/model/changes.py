# SPDX-License-Identifier: Apache-2.0
"""Changes that the store sends to a Forest: everything, or the changes since a cursor, and names; news for watchers.

News are the providers that changed, and their changed parts (contract page 99, section 4).

The text of a cursor is short, URL-safe and opaque (contract page 99).
"""

import base64
import binascii
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from treeclaim.model.names import CUSTOM_PREFIX
from treeclaim.model.parts import EVERYTHING, Part
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


@dataclass(frozen=True, slots=True)
class ProviderEffect:
    """The effect of one transaction on a provider.

    Attributes:
        parts: The parts that it changed, perhaps too many.
        uuid: UUID of a provider that it deleted; None for an existing provider.
        tree: Uuid of its former root, if that has changed.
        usage: Changes by claims, if nothing else was changed; else None.
    """

    parts: Part
    uuid: str | None = None
    tree: str | None = None
    usage: UsageChange | None = None


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """The change of a provider.

    Attributes:
        generation: The present one; None if the provider is gone.
        parts: The changed parts, perhaps too many.
        trees: Uuids of the former and present roots.
        root: Uuid of the present root; None if the provider is gone.
    """

    generation: int | None
    parts: Part
    trees: AbstractSet[str]
    root: str | None

    def after(self, earlier: "ProviderChange") -> "ProviderChange":
        """Return the two changes of one provider as one."""
        return ProviderChange(
            self.generation, self.parts | earlier.parts, self.trees | earlier.trees, self.root
        )

    @property
    def may_be_a_move(self) -> bool:
        """Return whether it may be a move from another tree, a creation, or a deletion."""
        return self.parts == EVERYTHING or self.trees != {self.root}


@dataclass(frozen=True, slots=True)
class News:
    """The changes committed between two cursors; each transaction whole or not at all.

    Attributes:
        cursor: The later one.
        changes: By uuid of the provider.
        catalogue: Whether traits or resource classes came, went or were renamed.
    """

    cursor: Cursor
    changes: Mapping[str, ProviderChange]
    catalogue: bool

    @property
    def is_empty(self) -> bool:
        """Return whether there is no news."""
        return not self.changes and not self.catalogue

    @classmethod
    def as_one(cls, several: Sequence["News"]) -> "News":
        """Return news that follow each other as one; there must be some."""
        folded = dict(several[0].changes)
        for news in several[1:]:
            for uuid, change in news.changes.items():
                earlier = folded.get(uuid)
                folded[uuid] = change if earlier is None else change.after(earlier)
        return cls(several[-1].cursor, folded, any(news.catalogue for news in several))

    def within(self, roots: Mapping[str, str | None]) -> "News":
        """Return the changes in some trees.

        A provider that stayed in its tree while the root was replaced has not changed:
        `treeclaim.store.feed.news` adds it.

        Args:
            roots: The UUID of the root of each provider's tree, by the UUID of the provider; None for
                a provider that does not exist.
        """
        tree_uuids = set(roots).union(root for root in roots.values() if root is not None)
        for named in roots.keys() & self.changes.keys():
            tree_uuids |= self.changes[named].trees
        kept = {
            uuid: change
            for uuid, change in self.changes.items()
            if uuid in tree_uuids or not tree_uuids.isdisjoint(change.trees)
        }
        # Callers compare by identity to find that nothing was dropped.
        return self if len(kept) == len(self.changes) else News(self.cursor, kept, self.catalogue)

    def beside(self, members: Mapping[str, ProviderChange]) -> "News":
        """Return this with providers for which another tree became theirs, or the other way round."""
        changes = dict(self.changes)
        for uuid, member in members.items():
            change = changes.get(uuid)
            changes[uuid] = member if change is None else change.after(member)
        return News(self.cursor, changes, self.catalogue)
