# SPDX-License-Identifier: Apache-2.0
"""Entries of `provider_summaries` as ready-made JSON (page 90, section 5.2), until something in them changes.

Three levels, because each helps where the others do not. The text of a provider, so that a claim on
one host of a wide tree does not make all of the tree be written again. The text of a tree: answers
show whole trees, and one long string is joined much faster than many short ones. And the text of
the trees of the last answer, as questions in a row often match the same trees.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import orjson

from treeclaim.forest.table.columns import Column, Trees
from treeclaim.forest.table.order import TreeOrder
from treeclaim.model.provider import Consumes, Inventory, Provider
from treeclaim.model.request import BodyForm

Handles = npt.NDArray[np.int32]
"""Handles of providers, whatever row they are in; see `RowIndex`."""

_MOST_TREE_BYTES = 32_000_000
"""Bytes of texts of trees; what is in those of several providers is there twice."""

_LEAST_ROW_BYTES = 32_000_000

_MOST_BYTES_FOR_A_ROW = 1_000
"""Bytes of texts of providers: the greater of this many and so many for each. A usual one has 300."""

_LONGEST_KEPT = 16_000_000
"""Bytes of the text of an answer's trees that is kept for the next answer."""

_FULL = BodyForm()

_ORJSON_BITS = 64


class SummaryTexts:
    """Texts of providers, and of trees by the root, all by handles, which outlast a change of rows.

    A change costs the text of its tree, and those of the providers that it concerns. The text of a tree of one
    provider is the provider's, and counted there. Where there are too many bytes, all texts of the kind are dropped.
    """

    def __init__(self, write: Callable[[int], bytes], handles: Callable[[], Handles]) -> None:
        """Begin with no texts.

        Args:
            write: Writes the text of a row.
            handles: Returns the handles by row as they are now.
        """
        self._write = write
        self._handles = handles
        self._rows = Column(object)
        self._trees = Column(object)
        self.row_bytes = 0
        self.tree_bytes = 0
        self._last: tuple[bytes, bytes] = b"", b""

    def __len__(self) -> int:
        """Return for how many handles there is a place."""
        return len(self._rows)

    def extend(self, count: int) -> None:
        """Have a place for so many handles more."""
        for column in (self._rows, self._trees):
            column.extend(np.full(count, None))

    def forget(self, handles: Iterable[int], roots: Iterable[int]) -> None:
        """Drop the texts of some providers, and of the trees of some roots, given the handles of both."""
        rows, trees = self._rows.values, self._trees.values
        self._last = b"", b""
        for root in roots:
            if trees[root] is not None and trees[root] is not rows[root]:
                self.tree_bytes -= len(trees[root])
            trees[root] = None
        for handle in handles:
            if rows[handle] is not None:
                self.row_bytes -= len(rows[handle])
                rows[handle] = None

    def forget_all(self) -> None:
        """Drop all texts."""
        self._rows.values[:] = None
        self._forget_trees()
        self.row_bytes = 0

    def _forget_trees(self) -> None:
        self._trees.values[:] = None
        self.tree_bytes = 0
        self._last = b"", b""

    def joined(self, trees: Trees, order: TreeOrder, check: Callable[[], None]) -> bytes:
        """Return the texts of some trees, given their numbers, with commas between them.

        `check` is called before each text that has to be written, and may raise.
        """
        handles = self._handles()[order.roots[trees]]
        key = handles.tobytes()
        last, text = self._last
        if last != key:
            text = b",".join(self._texts(trees, handles, order, check))
            if len(text) <= _LONGEST_KEPT:
                self._last = key, text
        return text

    def _texts(
        self, trees: Trees, handles: Handles, order: TreeOrder, check: Callable[[], None]
    ) -> list[bytes]:
        rows = order.roots[trees]
        texts: list[bytes | None] = self._trees.values[handles].tolist()
        at = -1
        # Most often all but a few are known, and to find these takes no loop over all.
        for _ in range(texts.count(None)):
            check()
            at = texts.index(None, at + 1)
            root = int(rows[at])
            texts[at] = self._tree(root, int(order.end[root]) - root)
        return cast(list[bytes], texts)

    def _tree(self, root: int, size: int) -> bytes:
        handles = self._handles()[root : root + size].tolist()
        cached_texts: list[bytes | None] = self._rows.values[handles].tolist()
        texts = [
            self._row(row, handle) if text is None else text
            for row, (handle, text) in enumerate(zip(handles, cached_texts, strict=True), root)
        ]
        if size == 1:
            self._trees.values[handles[0]] = self._rows.values[handles[0]]
            return texts[0]
        text = b",".join(texts)
        if self.tree_bytes + len(text) > _MOST_TREE_BYTES:
            self._forget_trees()
        if len(text) <= _MOST_TREE_BYTES:
            self._trees.values[handles[0]] = text
            self.tree_bytes += len(text)
        return text

    def _row(self, row: int, handle: int) -> bytes:
        text = self._write(row)
        most = max(_LEAST_ROW_BYTES, _MOST_BYTES_FOR_A_ROW * len(self))
        if self.row_bytes + len(text) > most:
            self.forget_all()
        if len(text) <= most:
            self._rows.values[handle] = text
            self.row_bytes += len(text)
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
