# SPDX-License-Identifier: Apache-2.0
"""A cache of the summaries of trees as JSON, until something in them changes.

Three levels, because each helps where the one above does not. The text of a provider, so that a claim on
one host of a wide tree does not make all of the tree be written again. The text of a tree: answers
show whole trees, and one long string is joined much faster than many short ones. And the text of
all the trees of the last answer, as two questions in a row often match the same trees.
"""

from collections.abc import Callable
from typing import cast

from treeclaim.forest.table.columns import Column, Rows, Trees
from treeclaim.forest.table.order import TreeOrder

_MOST_TREE_BYTES = 32_000_000
"""Of texts of trees of several providers; what is in them is there twice."""

_LEAST_ROW_BYTES = 32_000_000
_MOST_BYTES_FOR_A_ROW = 1_000
"""Of texts of providers: the greater of this many and so many for each. A usual one has 300."""

_LONGEST_KEPT = 16_000_000
"""Bytes of the text of an answer that is kept for the next one."""


class SummaryTexts:
    """Texts of providers by row, and of trees by the row of the root.

    A tree whose shape changes is in other rows then, so a change costs the text of that tree alone; those
    of its providers may be put where these are now.
    """

    def __init__(self, write: Callable[[int], bytes]) -> None:
        """Take the function that writes the text of a row."""
        self._write = write
        self._rows = Column(object)
        self._row_bytes = 0
        self._trees = Column(object)
        self._tree_bytes = 0
        self._last: tuple[bytes, bytes] | None = None

    def forget(self, row: int, root: int) -> None:
        """Drop what the text of a row is in, given the row of its root."""
        self._row_bytes -= len(self._rows.values[row] or b"")
        self._rows.values[row] = None
        self._trees.values[root] = None
        self._last = None

    def forget_all(self) -> None:
        """Drop all texts."""
        self._rows.values[:] = None
        self._trees.values[:] = None
        self._row_bytes = self._tree_bytes = 0
        self._last = None

    def known(self, row: int) -> bytes | None:
        """Return the text of a row, if it is known."""
        text: bytes | None = self._rows.values[row]
        return text

    def put(self, row: int, text: bytes) -> None:
        """Keep the text of a new row, which its provider had in another row."""
        self._row_bytes += len(text)
        self._rows.values[row] = text

    def extend(self, count: int) -> None:
        """Add rows at the end."""
        self._rows.extend([None] * count)
        self._trees.extend([None] * count)

    def joined(self, trees: Trees, order: TreeOrder, check: Callable[[], None]) -> bytes:
        """Return the text of some trees, given their numbers, ascending.

        `check` is called before each text that has to be written, and may raise.
        """
        roots = order.row[order.roots[trees]]
        key = roots.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        text = b",".join(self._texts(trees, roots, order, check))
        if len(text) <= _LONGEST_KEPT:
            self._last = key, text
        return text

    def texts(self, trees: Trees, order: TreeOrder, check: Callable[[], None]) -> list[bytes]:
        """Return the text of each of some trees, as `joined` does."""
        return self._texts(trees, order.row[order.roots[trees]], order, check)

    def _texts(
        self, trees: Trees, roots: Rows, order: TreeOrder, check: Callable[[], None]
    ) -> list[bytes]:
        found: list[bytes | None] = self._trees.values[roots].tolist()
        at = -1
        # Most often all but a few are known, and to find these takes no loop over all.
        for _ in range(found.count(None)):
            check()
            at = found.index(None, at + 1)
            root = int(order.roots[trees[at]])
            found[at] = self._tree(int(roots[at]), int(order.end[root]) - root)
        return cast(list[bytes], found)

    def _tree(self, root: int, size: int) -> bytes:
        texts = [self._row(row) for row in range(root, root + size)]
        if size == 1:
            self._trees.values[root] = texts[0]
            return texts[0]
        text = b",".join(texts)
        self._tree_bytes += len(text)
        if self._tree_bytes > _MOST_TREE_BYTES:
            self._trees.values[:] = None
            self._tree_bytes = len(text)
        self._trees.values[root] = text
        return text

    def _row(self, row: int) -> bytes:
        text: bytes | None = self._rows.values[row]
        if text is None:
            text = self._write(row)
            self._row_bytes += len(text)
            if self._row_bytes > max(_LEAST_ROW_BYTES, _MOST_BYTES_FOR_A_ROW * len(self._rows)):
                self.forget_all()
                self._row_bytes = len(text)
            self._rows.values[row] = text
        return text
