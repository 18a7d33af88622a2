# SPDX-License-Identifier: Apache-2.0
"""Entries of `provider_summaries` as ready-made JSON (page 90, section 5.2), until something in them changes.

Three levels, because each helps where the others do not. The text of a provider, so that a claim on
one host of a wide tree does not make all of the tree be written again. The text of a tree: answers
show whole trees, and one long string is joined much faster than many short ones. And the text of
the trees of the last answer, as questions in a row often match the same trees.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import orjson

from treeclaim.forest.table.columns import Column, Integers, Trees
from treeclaim.forest.table.order import TreeOrder
from treeclaim.forest.table.provider_table import ProviderTable
from treeclaim.model.provider import Consumes, Inventory, Provider
from treeclaim.model.request import BodyForm

_MOST_TREE_BYTES = 32_000_000
"""Bytes of texts of trees; what is in those of several providers is there twice."""

_LEAST_ROW_BYTES = 32_000_000

_MOST_BYTES_FOR_A_ROW = 1_000
"""Bytes of texts of providers: the greater of this many and so many for each. A usual one has 300."""

_LONGEST_KEPT = 16_000_000
"""Bytes of the text of an answer's trees that is kept for the next answer."""

_FULL = BodyForm()

_ORJSON_BITS = 64


Text = TypeVar("Text")
"""A text, or its parts."""


class StampedTexts(Generic[Text]):
    """Texts by handle, each with the stamp of the values that it shows; 0 for a text that is unknown.

    Attributes:
        nbytes: The bytes of all texts, as far as they count.
    """

    def __init__(self) -> None:
        self._texts = Column(object)
        self._stamps = Column(np.int64)
        self._sizes = Column(np.int32)
        self.nbytes = 0

    def clear(self) -> None:
        """Drop all texts."""
        self._texts.values[:] = None
        self._stamps.values[:] = self._sizes.values[:] = self.nbytes = 0

    def find(self, handles: Integers, stamps: Integers) -> tuple[list[Text], list[int]]:
        """Return the texts of some handles, and the positions of those that are not valid."""
        missing = int(handles.max(initial=-1)) + 1 - len(self._texts)
        if missing > 0:
            self._texts.extend(np.full(missing, None))
            for column in (self._stamps, self._sizes):
                column.extend(np.zeros(missing, dtype=np.int64))
        stale = np.flatnonzero(self._stamps.values[handles] != stamps)
        return self._texts.values[handles].tolist(), stale.tolist()

    def keep(self, handle: int, stamp: int, text: Text, size: int) -> None:
        """Keep a text, of which so many bytes count."""
        self.nbytes += size - int(self._sizes.values[handle])
        self._texts.values[handle] = text
        self._stamps.values[handle] = stamp
        self._sizes.values[handle] = size


class SummaryTexts:
    """Texts of providers, and of trees by the root, all by handles, which outlast a change of rows.

    A text is valid as long as the stamp of its row, or tree, in the table stays the same. Where there are too many
    bytes, all texts of the kind are dropped.

    Attributes:
        providers: Texts of providers.
        trees: Texts of trees. That of a single provider is the provider's, and counts there.
    """

    def __init__(self, table: ProviderTable, write: Callable[[int], bytes]) -> None:
        """Begin with no texts of a table, given a function that writes the text of a row."""
        self._table = table
        self._write = write
        self.providers = StampedTexts[bytes]()
        self.trees = StampedTexts[bytes]()
        self._last: tuple[bytes, bytes] = b"", b""

    def forget_all(self) -> None:
        """Drop all texts."""
        self.providers.clear()
        self.trees.clear()
        self._last = b"", b""

    def joined(self, trees: Trees, order: TreeOrder, check: Callable[[], None]) -> bytes:
        """Return the texts of some trees, given their numbers, with commas between them.

        `check` is called before each text that has to be written, and may raise.
        """
        roots = order.roots[trees]
        handles = self._table.handle.values[roots]
        stamps = self._table.tree_stamp.values[roots]
        key = handles.tobytes() + stamps.tobytes()
        last, text = self._last
        if last != key:
            texts, stale = self.trees.find(handles, stamps)
            for at in stale:
                check()
                root = int(roots[at])
                texts[at] = self._write_tree(root, int(order.end[root]), int(stamps[at]))
            text = b",".join(texts)
            if len(text) <= _LONGEST_KEPT:
                self._last = key, text
        return text

    def _write_tree(self, root: int, end: int, stamp: int) -> bytes:
        handles = self._table.handle.values[root:end]
        stamps = self._table.stamp.values[root:end]
        texts, stale = self.providers.find(handles, stamps)
        most = max(_LEAST_ROW_BYTES, _MOST_BYTES_FOR_A_ROW * len(self._table.holdings.names))
        for at in stale:
            text = texts[at] = self._write(root + at)
            if self.providers.nbytes + len(text) > most:
                self.forget_all()
            if len(text) <= most:
                self.providers.keep(int(handles[at]), int(stamps[at]), text, len(text))
        text = b",".join(texts)
        size = len(text) if len(texts) > 1 else 0
        if self.trees.nbytes + size > _MOST_TREE_BYTES:
            self.trees.clear()
        if size <= _MOST_TREE_BYTES:
            self.trees.keep(int(handles[0]), stamp, text, size)
        return text


@dataclass(frozen=True, slots=True)
class InventoryView:
    """An inventory of a provider in answers.

    Attributes:
        resource_class: Name of the class.
        inventory: The amounts.
        used: Units allocated and consumed.
        modified_at: Last update (or creation), in seconds since the epoch.
        consumes: Consumption of a unit elsewhere, in canonical order.
    """

    resource_class: str
    inventory: Inventory
    used: int
    modified_at: float
    consumes: tuple[Consumes, ...] = ()


def summary_fragment(
    provider: Provider,
    amounts: Mapping[str, Any],
    traits: Sequence[str],
    form: BodyForm = _FULL,
    requested: Collection[str] = (),
) -> bytes:
    """Write one member of `provider_summaries`, key included.

    Args:
        provider: The provider.
        amounts: Capacity and usage of its inventories by class name, in order of class id.
        traits: Its traits in catalogue order.
        form: Members that the microversion shows.
        requested: Names of the classes to show where the form does not show all.
    """
    shown = {name: amounts[name] for name in amounts if form.all_classes or name in requested}
    entry: dict[str, Any] = {"resources": shown}
    if form.traits:
        entry["traits"] = traits
    if form.nested:
        entry["parent_provider_uuid"] = provider.parent_uuid
        entry["root_provider_uuid"] = provider.root_uuid
    return b'"%s":%s' % (provider.uuid.encode(), orjson.dumps(entry))


def writable(number: int) -> int | orjson.Fragment:
    """Return a number that orjson can serialize; a capacity may have more than 64 bits."""
    return number if number.bit_length() < _ORJSON_BITS else orjson.Fragment(str(number))
