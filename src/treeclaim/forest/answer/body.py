# SPDX-License-Identifier: Apache-2.0
"""The answer to a request for candidates as JSON bytes (contract page 90, section 5).

Bytes, not objects. Candidates with the same pattern, that is, where the same slots fall on the
same provider, differ in nothing but uuids, and these have a fixed length. So a pattern is written
once as a template, and a whole block of candidates is a matrix of characters in which the columns
of the uuids are filled by one copy each. Summaries are fragments that the Forest keeps ready.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from treeclaim.forest.answer.summaries import Summaries
from treeclaim.forest.answer.templates import Template, patterns_of, template_of
from treeclaim.forest.order.ordered import first_of
from treeclaim.forest.order.split import first_split
from treeclaim.forest.solve.blocks import Choices
from treeclaim.forest.solve.repetition import BLOCK, candidates
from treeclaim.forest.solve.search import Search
from treeclaim.forest.solve.selection import gathered
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import Rows
from treeclaim.model.request import BodyForm

_SLOTS_TOGETHER = 50_000
"""Slots of candidates that are written together, at some hundred bytes each: a few milliseconds."""


class Answer:
    """The body that answers one search, written piece by piece.

    Attributes:
        candidates: How many were written so far.
    """

    def __init__(self, search: Search, form: BodyForm) -> None:
        self.candidates = 0
        self._search = search
        self._form = form
        self._scores: list[float] = []
        self._row = search.forest.order.row
        self._uuids = search.forest.uuid.values
        self._summaries = Summaries(search, form)

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body: first the candidates, then the summaries of the trees they use."""
        yield b'{"allocation_requests":['
        is_first = True
        # What is not sent before it is whole is held until then.
        is_held = not self._search.is_eager
        for piece in self._split() if self._search.plan.split else self._whole():
            if not is_first:
                yield b","
            if is_held:
                self._search.budget.hold(len(piece))
            yield piece
            is_first = False
        if self._search.plan.request.order is not None:
            yield b'],"scores":' + orjson.dumps(self._scores)[:-1]
        yield b'],"provider_summaries":{'
        yield from self._summaries.pieces()
        yield b"}}"

    def _whole(self) -> Iterator[bytes | memoryview]:
        for block in self._blocks():
            self.candidates += len(block)
            self._summaries.note(block)
            rows = max(_SLOTS_TOGETHER // max(block.shape[1], 1), 1)
            for start in range(0, len(block), rows):
                yield self._written(block[start : start + rows])

    def _split(self) -> Iterator[bytes]:
        plan, forest = self._search.plan, self._search.forest
        order = self._search.plan.request.order
        if order is None:
            found = Splitter(self._search).selected()
        else:
            found, self._scores = first_split(self._search, order)
        places = {place for one in found for place in (*one.places(plan), *one.chosen)}
        uuids = {place: forest.uuid_of(int(self._row[place])) for place in places}
        self.candidates = len(found)
        for one in found:
            self._summaries.note_places(one.places(plan))
            yield one.written(plan, uuids)

    def _blocks(self) -> Iterator[Choices]:
        search = self._search
        order = search.plan.request.order
        if order is not None:
            chosen, scores = first_of(search, order)
            self._scores = scores.tolist()
            return (chosen[at : at + BLOCK] for at in range(0, len(chosen), BLOCK))
        if search.plan.request.nested:
            return candidates(search)
        if search.plan.request.limit is None:
            return gathered(self._noted(search.selected(search.all_blocks())), BLOCK)
        return gathered(iter(self._limited()), BLOCK)

    def _noted(self, blocks: Iterator[Choices]) -> Iterator[Choices]:
        """Note for the summaries of old versions what is in some candidates."""
        for block in blocks:
            self._summaries.note_unlimited(block)
            yield block

    def _limited(self) -> list[Choices]:
        """Return what a limit leaves below 1.29, where summaries are of every candidate there is.

        The operator's maximum bounds how many that are. Without one they are not all drawn: whether
        a provider is in some candidate is asked for those that could be shown alone.
        """
        search = self._search
        blocks = search.all_blocks()
        if search.options.randomize or search.options.maximum is not None:
            blocks = self._noted(blocks)
        kept = []
        for block in search.selected(blocks):
            search.budget.hold(block.nbytes)
            self._summaries.note(block)
            self._summaries.note_unlimited(block)
            kept.append(block)
        if search.options.maximum is not None:
            for _ in blocks:
                search.budget.check()
        elif sum(map(len, kept)) >= (search.plan.request.limit or 0):
            self._summaries.note_supported()
        return kept

    def _written(self, block: Choices) -> memoryview:
        """Write a block of candidates, in order, with commas between them."""
        self._search.budget.check()
        plan, form = self._search.plan, self._form
        patterns = [
            (template_of(plan, pattern, form), rows) for pattern, rows in patterns_of(block)
        ]
        if len(patterns) == 1:
            text = self._alike(patterns[0][0], block)
        else:
            text = self._mixed(patterns, block)
        return memoryview(text)[:-1]

    def _alike(self, template: Template, block: Choices) -> bytearray:
        """Write candidates of one pattern, each with a comma behind it."""
        text = bytearray(template.text) * len(block)
        for slot, holes in template.holes.items():
            uuids = self._uuids.take(self._row.take(block[:, slot]))
            for hole in holes:
                _items(text, uuids.dtype, hole)[:: len(template.text)] = uuids
        return text

    def _mixed(
        self, patterns: Sequence[tuple[Template, Rows | slice]], block: Choices
    ) -> bytearray:
        """Write candidates of several patterns: those of each together, then where they belong."""
        lengths = np.empty(len(block), dtype=np.int64)
        for template, rows in patterns:
            lengths[rows] = len(template.text)
        ends = lengths.cumsum()
        begins = ends - lengths
        text = bytearray(int(ends[-1]))
        for template, rows in patterns:
            self._search.budget.check()
            candidate = np.dtype(f"V{len(template.text)}")
            alike = np.frombuffer(self._alike(template, block[rows]), dtype=candidate)
            _items(text, candidate)[begins[rows]] = alike
        return text


def _items(text: bytearray, kind: np.dtype[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Return what begins at each byte of a text from an offset on, to be written.

    As one item each, not as single characters: numpy copies items much faster.
    """
    count = len(text) - offset - kind.itemsize + 1
    return np.ndarray((count,), dtype=kind, buffer=text, offset=offset, strides=(1,))
