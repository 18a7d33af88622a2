# SPDX-License-Identifier: Apache-2.0
"""Which providers the summaries of an answer show, and their JSON (page 90, sections 4 and 5.2)."""

from collections.abc import Iterator, Sequence

import numpy as np

from treeclaim.forest.columns import Mask, Rows
from treeclaim.forest.combine import Choices
from treeclaim.forest.fragments import summary_fragment
from treeclaim.forest.search import Search
from treeclaim.model.request import BodyForm

_TREES_IN_A_PIECE = 4096


class Summaries:
    """Notes which trees and providers the candidates use, and writes their summaries.

    From 1.29 all providers of every tree that gives something to a returned candidate are shown;
    before, the providers that give something to any candidate, but under a limit only those in
    the trees of returned ones.
    """

    def __init__(self, search: Search, form: BodyForm) -> None:
        self._forest = search.forest
        self._form = form
        self._order = search.forest.order
        wants = search.plan.wants
        self._giving = [one for one, want in enumerate(wants) if want.resources]
        self._relations = search.relations
        self._requested = {name for want in wants for name in want.resources}
        places = len(self._order.row)
        self._tree_used: Mask = np.zeros(places, dtype=np.bool_)
        self._provider_used: Mask = np.zeros(places, dtype=np.bool_)
        self._detached: dict[int, bytes] | None = None

    def note(self, block: Choices) -> None:
        """Note the trees that returned candidates use."""
        self._tree_used[self._order.root[block[:, self._giving]]] = True

    def note_places(self, places: Sequence[int]) -> None:
        """Note the trees of some providers that a returned candidate uses."""
        self._tree_used[self._order.root[places]] = True

    def note_unlimited(self, block: Choices) -> None:
        """Note the providers that candidates use which may yet be cut off by the limit."""
        self._provider_used[block[:, self._giving]] = True

    def detach(self) -> None:
        """Write the summaries of all trees that could still be used, as they are now."""
        possible = np.zeros(len(self._order.row), dtype=np.bool_)
        for one in self._giving:
            possible[self._order.root[self._relations[one].providers]] = True
        roots = np.flatnonzero(possible)
        self._detached = {int(root): self._written(roots[[i]]) for i, root in enumerate(roots)}

    def pieces(self) -> Iterator[bytes]:
        """Yield the members of `provider_summaries`, in the canonical order of providers."""
        roots = np.flatnonzero(self._tree_used)
        separator = b""
        for start in range(0, len(roots), _TREES_IN_A_PIECE):
            some = roots[start : start + _TREES_IN_A_PIECE]
            if self._detached is None:
                yield separator + self._written(some)
            else:
                yield separator + b",".join(self._detached[root] for root in some.tolist())
            separator = b","

    def _written(self, roots: Rows) -> bytes:
        """Write the summaries of some trees, given the places of their roots, ascending."""
        if self._form.nested:
            return b",".join(self._ready_made(roots))
        sizes = self._order.end[roots] - roots
        places = np.repeat(roots - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        used = places[self._provider_used[places]]
        return b",".join(map(self._older_form, self._order.row[used].tolist()))

    def _ready_made(self, roots: Rows) -> list[bytes]:
        first = self._order.row[roots]
        end = first + self._order.end[roots] - roots
        # Trees that lie next to each other are taken together.
        cuts = np.flatnonzero(first[1:] != end[:-1])
        starts = first[np.concatenate([[0], cuts + 1])]
        ends = end[np.concatenate([cuts, [-1]])]
        return self._forest.summaries(list(zip(starts.tolist(), ends.tolist(), strict=True)))

    def _older_form(self, row: int) -> bytes:
        return summary_fragment(
            self._forest.provider(row),
            self._forest.inventories(row),
            self._forest.traits(row),
            self._form,
            self._requested,
        )
