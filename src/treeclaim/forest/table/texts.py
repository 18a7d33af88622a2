# SPDX-License-Identifier: Apache-2.0
"""Entries of `provider_summaries` as JSON, cached until their values change (page 90, section 5.2).

The cache has three levels:

- The text of a provider: a claim on one host of a wide tree must not serialize the whole tree again.
- The text of a tree: answers show whole trees, and joining few long strings is much faster than
  joining many short ones.
- The text of all trees of the last answer: consecutive requests often match the same trees.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import orjson

from treeclaim.forest.table.columns import Column, Integers, Trees
from treeclaim.forest.table.order import TreeOrder
from treeclaim.forest.table.provider_table import ProviderTable
from treeclaim.model.provider import Consumption, Inventory, Provider
from treeclaim.model.request import BodyForm

_MOST_TREE_BYTES = 32_000_000
"""Bytes of the texts of trees; trees of several providers repeat the texts of these."""

_LEAST_ROW_BYTES = 32_000_000

_MOST_BYTES_FOR_A_ROW = 1_000
"""Bytes of the texts of providers for each row, if that is more than `_LEAST_ROW_BYTES`. A usual text
has 300.
"""

_LONGEST_KEPT = 16_000_000
"""Bytes up to which the text of all trees of an answer is kept."""

_FULL_FORM = BodyForm()

_ORJSON_BITS = 64


Text = TypeVar("Text")
"""A text, or its parts."""


class StampedTexts(Generic[Text]):
    """Texts by handle, each with the stamp of the values that it shows; 0 for a missing text.

    Attributes:
        nbytes: Counted bytes of all texts.
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
        """Return the texts of handles, and the positions of those that are missing or stale."""
        missing = int(handles.max(initial=-1)) + 1 - len(self._texts)
        if missing > 0:
            self._texts.extend(np.full(missing, None))
            for column in (self._stamps, self._sizes):
                column.extend(np.zeros(missing, dtype=np.int64))
        stale = np.flatnonzero(self._stamps.values[handles] != stamps)
        return self._texts.values[handles].tolist(), stale.tolist()

    def keep(self, handle: int, stamp: int, text: Text, size: int) -> None:
        """Store a text, of which `size` bytes count."""
        self.nbytes += size - int(self._sizes.values[handle])
        self._texts.values[handle] = text
        self._stamps.values[handle] = stamp
        self._sizes.values[handle] = size


class SummaryTexts:
    """Texts of providers, and of trees by the root, all by handle.

    A text is valid as long as the stamp of its row, or tree, stays the same. A cache that exceeds its
    bytes drops all its texts.

    Attributes:
        providers: Texts of providers.
        trees: Texts of trees. The text of a single provider counts among those of providers only.
    """

    def __init__(self, table: ProviderTable, write: Callable[[int], bytes]) -> None:
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
        """Return the texts of trees, joined by commas.

        `check` is called before each text that is written, and may raise.
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

    `used` counts units allocated and consumed; `modified_at` is in seconds since the epoch.
    """

    resource_class: str
    inventory: Inventory
    used: int
    modified_at: float
    consumes: tuple[Consumption, ...] = ()


def summary_fragment(
    provider: Provider,
    amounts: Mapping[str, Any],
    traits: Sequence[str],
    form: BodyForm = _FULL_FORM,
    requested: Collection[str] = (),
) -> bytes:
    """Write one member of `provider_summaries`, with its key.

    Amounts (capacity and usage by class name) are in order of class id, traits in catalogue order.
    A form that does not show all classes shows the requested ones.
    """
    shown_amounts = {
        name: amounts[name] for name in amounts if form.all_classes or name in requested
    }
    entry: dict[str, Any] = {"resources": shown_amounts}
    if form.traits:
        entry["traits"] = traits
    if form.nested:
        entry["parent_provider_uuid"] = provider.parent_uuid
        entry["root_provider_uuid"] = provider.root_uuid
    return b'"%s":%s' % (provider.uuid.encode(), orjson.dumps(entry))


def make_serializable(number: int) -> int | orjson.Fragment:
    """Return a number for orjson, which serializes 64 bits only; a capacity may have more."""
    return number if number.bit_length() < _ORJSON_BITS else orjson.Fragment(str(number))
