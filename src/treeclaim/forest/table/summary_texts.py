# SPDX-License-Identifier: Apache-2.0
"""A cache of the summaries of trees as JSON, until something in them changes.

Three levels, because each helps where the one above does not. The text of a provider, so that a claim on
one host of a wide tree does not make all of the tree be written again. The text of a tree: answers
show whole trees, and one long string is joined much faster than many short ones. And the text of
all the trees of the last answer, as two questions in a row often match the same trees.
"""

from collections.abc import Callable

import numpy as np

from treeclaim.forest.table.columns import Trees
from treeclaim.forest.table.order import TreeOrder

_MOST_TREE_BYTES = 32_000_000
"""Of texts of trees of several providers; what is in them is there twice."""

_LEAST_ROW_BYTES = 32_000_000
_MOST_BYTES_FOR_A_ROW = 1_000
"""Of texts of providers: the greater of this many and so many for each. A usual one has 300."""

_LONGEST_KEPT = 16_000_000
"""Bytes of the text of an answer that is kept for the next one."""


class SummaryTexts:
    """Texts of providers by row, and of trees by number in the canonical order."""

    def __init__(self, write: Callable[[int], bytes]) -> None:
        """Take the function that writes the text of a row."""
        self._write = write
        self._rows: list[bytes | None] = []
        self._row_bytes = 0
        self._order: TreeOrder | None = None
        self._trees: list[bytes | None] = []
        self._tree_bytes = 0
        self._last: tuple[bytes, bytes] | None = None

    def forget(self, row: int) -> None:
        """Drop what the text of a row is in."""
        self._row_bytes -= len(self._rows[row] or b"")
        self._rows[row] = None
        self._last = None
        if self._order is not None:
            self._trees[self._order.tree[self._order.position[row]]] = None

    def forget_all(self, row_count: int) -> None:
        """Drop all texts; the number of rows is this from now on."""
        self._rows = [None] * row_count
        self._row_bytes = 0
        self.forget_order()

    def extend(self, count: int) -> None:
        """Add rows at the end."""
        self._rows.extend([None] * count)
        self.forget_order()

    def forget_order(self) -> None:
        """Drop what depends on the canonical order."""
        self._order = None
        self._last = None

    def joined(self, trees: Trees, order: TreeOrder) -> bytes:
        """Return the text of some trees, given their numbers, ascending."""
        key = trees.tobytes()
        if self._last is not None and self._order is order and self._last[0] == key:
            return self._last[1]
        text = b",".join(self.texts(trees, order))
        if len(text) <= _LONGEST_KEPT:
            self._last = key, text
        return text

    def texts(self, trees: Trees, order: TreeOrder) -> list[bytes]:
        """Return the text of each of some trees, given their numbers, ascending."""
        if not len(trees):
            return []
        if self._order is not order:
            self._order = order
            self._trees = [None] * len(order.roots)
            self._tree_bytes = 0
        # Trees that lie next to each other are taken together.
        cuts = (np.flatnonzero(trees[1:] - trees[:-1] > 1) + 1).tolist()
        found: list[bytes | None] = []
        for first, end in zip([0, *cuts], [*cuts, len(trees)], strict=True):
            found += self._trees[trees[first] : trees[end - 1] + 1]
        return [
            self._tree(number, order) if text is None else text
            for number, text in zip(trees.tolist(), found, strict=True)
        ]

    def _tree(self, number: int, order: TreeOrder) -> bytes:
        root = int(order.roots[number])
        first = int(order.row[root])
        size = int(order.end[root]) - root
        texts = [self._row(row) for row in range(first, first + size)]
        if size == 1:
            self._trees[number] = texts[0]
            return texts[0]
        text = b",".join(texts)
        self._tree_bytes += len(text)
        if self._tree_bytes > _MOST_TREE_BYTES:
            self._trees = [None] * len(self._trees)
            self._tree_bytes = len(text)
        self._trees[number] = text
        return text

    def _row(self, row: int) -> bytes:
        text = self._rows[row]
        if text is None:
            text = self._write(row)
            self._row_bytes += len(text)
            if self._row_bytes > max(_LEAST_ROW_BYTES, _MOST_BYTES_FOR_A_ROW * len(self._rows)):
                self._rows = [None] * len(self._rows)
                self._trees = [None] * len(self._trees)
                self._row_bytes, self._tree_bytes = len(text), 0
            self._rows[row] = text
        return text
