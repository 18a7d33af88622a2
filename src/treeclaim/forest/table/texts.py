# SPDX-License-Identifier: Apache-2.0
"""Entries of `provider_summaries` as ready-made JSON (page 90, section 5.2), until something in them changes.

Two levels, because each helps where the other one does not. The text of a provider, so that a claim on
one host of a wide tree does not make all of the tree be written again. The text of a tree: answers
show whole trees, and one long string is joined much faster than many short ones.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import orjson

from treeclaim.forest.table.columns import Column, Trees
from treeclaim.forest.table.order import TreeOrder
from treeclaim.model.inventory import Consumes, Inventory
from treeclaim.model.provider import Provider
from treeclaim.model.request import BodyForm

Handles = npt.NDArray[np.int32]
"""Handles of providers, whatever row they are in; see `RowIndex`."""

_MOST_TREE_BYTES = 32_000_000
"""Bytes of texts of trees; what is in those of several providers is there twice."""

_LEAST_ROW_BYTES = 32_000_000

_MOST_BYTES_FOR_A_ROW = 1_000
"""Bytes of texts of providers: the greater of this many and so many for each. A usual one has 300."""

_FULL = BodyForm()

_ORJSON_BITS = 64


class _Texts:
    """Texts by handle, bounded in bytes.

    Attributes:
        column: The texts, None for those that are not known.
        nbytes: What the texts that are counted here take.
    """

    def __init__(self) -> None:
        self.column = Column(object)
        self.nbytes = 0
        self._hand = 0

    def make_room(self, nbytes: int, most: int, forget: Callable[[int], None]) -> bool:
        """Count a text of so many bytes, and forget others in turn until all take `most` at most.

        Return False, with nothing counted or forgotten, for a text that is longer than that alone.
        """
        if nbytes > most:
            return False
        self.nbytes += nbytes
        while self.nbytes > most:
            self._hand = (self._hand + 1) % len(self.column)
            forget(self._hand)
        return True


class SummaryTexts:
    """Texts of providers, and of trees by the root, all by handles, which outlast a change of rows.

    A change costs the text of its tree, and those of the providers that it concerns. The text of a tree
    of one provider is the provider's, and counted there. Where there are too many bytes, others are
    dropped in turn, as many as it takes.
    """

    def __init__(self, write: Callable[[int], bytes], handles: Callable[[], Handles]) -> None:
        """Begin with no texts.

        Args:
            write: Writes the text of a row.
            handles: Returns the handles by row as they are now.
        """
        self._write = write
        self._handles = handles
        self._rows = _Texts()
        self._trees = _Texts()

    @property
    def nbytes(self) -> int:
        """Return the bytes of the texts of providers and trees."""
        return self._rows.nbytes + self._trees.nbytes

    def __len__(self) -> int:
        """Return for how many handles there is a place."""
        return len(self._rows.column)

    def forget(self, handles: Iterable[int], roots: Iterable[int]) -> None:
        """Drop the texts of some providers, and of the trees of some roots, given the handles of both."""
        for handle in handles:
            self._forget_row(handle)
        for root in roots:
            self._forget_tree(root)

    def forget_all(self) -> None:
        """Drop all texts."""
        count = len(self)
        self._rows, self._trees = _Texts(), _Texts()
        self.extend(count)

    def _forget_row(self, handle: int) -> None:
        text: bytes | None = self._rows.column.values[handle]
        if text is None:
            return
        if self._trees.column.values[handle] is text:
            self._trees.column.values[handle] = None
        self._rows.column.values[handle] = None
        self._rows.nbytes -= len(text)

    def _forget_tree(self, root: int) -> None:
        text: bytes | None = self._trees.column.values[root]
        if text is not None and text is not self._rows.column.values[root]:
            self._trees.nbytes -= len(text)
        self._trees.column.values[root] = None

    def extend(self, count: int) -> None:
        """Have a place for so many handles more."""
        for texts in (self._rows, self._trees):
            texts.column.extend(np.full(count, None))

    def texts(self, trees: Trees, order: TreeOrder, check: Callable[[], None]) -> list[bytes]:
        """Return the text of each of some trees, given their numbers.

        `check` is called before each text that has to be written, and may raise.
        """
        rows = order.roots[trees]
        texts: list[bytes | None] = self._trees.column.values[self._handles()[rows]].tolist()
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
        cached_texts: list[bytes | None] = self._rows.column.values[handles].tolist()
        texts = [
            self._row(row, handle) if text is None else text
            for row, (handle, text) in enumerate(zip(handles, cached_texts, strict=True), root)
        ]
        if size == 1:
            self._trees.column.values[handles[0]] = self._rows.column.values[handles[0]]
            return texts[0]
        text = b",".join(texts)
        if self._trees.make_room(len(text), _MOST_TREE_BYTES, self._forget_tree):
            self._trees.column.values[handles[0]] = text
        return text

    def _row(self, row: int, handle: int) -> bytes:
        text = self._write(row)
        most = max(_LEAST_ROW_BYTES, _MOST_BYTES_FOR_A_ROW * len(self._rows.column))
        if self._rows.make_room(len(text), most, self._forget_row):
            self._rows.column.values[handle] = text
        return text


@dataclass(frozen=True, slots=True)
class InventoryView:
    """An inventory of a provider as clients see it.

    Attributes:
        resource_class: Name of the class.
        inventory: The amounts.
        used: Units allocated, and those consumed.
        modified_at: Last update (or creation), in seconds since the epoch.
        consumes: What a unit consumes elsewhere, in the order of clients.
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
        form: What the microversion shows.
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
    """Let orjson write a number of more than 64 bits, which a capacity may be."""
    return number if number.bit_length() < _ORJSON_BITS else orjson.Fragment(str(number))
