# SPDX-License-Identifier: Apache-2.0
"""The answer to a request for candidates as JSON bytes (contract page 90, section 5).

Bytes, not objects. Candidates with the same pattern, that is, where the same slots fall on the
same provider, differ in nothing but uuids, and these have a fixed length. So a pattern is written
once as a template, and a whole block of candidates is a matrix of characters in which the columns
of the uuids are filled by one copy each. Summaries are fragments that the Forest keeps ready.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from treeclaim.forest.answer.summaries import Summaries
from treeclaim.forest.answer.templates import patterns_of, template_of
from treeclaim.forest.solve.blocks import Choices
from treeclaim.forest.solve.repetition import BLOCK, candidates
from treeclaim.forest.solve.search import Search
from treeclaim.forest.solve.selection import gathered
from treeclaim.forest.split.splitting import Splitter
from treeclaim.model.request import BodyForm


class Answer:
    """The body that answers one search, written piece by piece.

    Attributes:
        candidates: How many were written so far.
    """

    def __init__(self, search: Search, form: BodyForm) -> None:
        self.candidates = 0
        self._search = search
        self._form = form
        self._row = search.forest.order.row
        self._uuids = search.forest.uuid.values
        self._summaries = Summaries(search, form)

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body: first the candidates, then the summaries of the trees they use."""
        yield b'{"allocation_requests":['
        is_first = True
        for piece in self._split() if self._search.plan.split else self._whole():
            if not is_first:
                yield b","
            yield piece
            is_first = False
        yield b'],"provider_summaries":{'
        yield from self._summaries.pieces()
        yield b"}}"

    def _whole(self) -> Iterator[memoryview]:
        for block in self._blocks():
            self.candidates += len(block)
            self._summaries.note(block)
            yield from self._written(block)

    def _split(self) -> Iterator[bytes]:
        plan, forest = self._search.plan, self._search.forest
        found = Splitter(self._search).selected()
        places = {place for one in found for place in (*one.places(plan), *one.chosen)}
        uuids = {place: forest.uuid_of(int(self._row[place])) for place in places}
        self.candidates = len(found)
        for one in found:
            self._summaries.note_places(one.places(plan))
            yield one.written(plan, uuids)

    def detach(self) -> None:
        """Copy what the rest needs out of the Forest, which may change before it is drawn."""
        self._summaries.detach()

    def _blocks(self) -> Iterator[Choices]:
        if self._search.plan.request.nested:
            return candidates(self._search)
        # Below 1.29 the summaries are of every candidate there is, whatever the limit.
        every = list(self._search.all_blocks())
        for block in every:
            self._summaries.note_unlimited(block)
        return gathered(self._search.selected(iter(every)), BLOCK)

    def _written(self, block: Choices) -> Iterator[memoryview]:
        """Write a block of candidates, those with the same pattern together."""
        for pattern, rows in patterns_of(block):
            template = template_of(self._search.plan, pattern, self._form)
            places = block[rows]
            text = bytearray(template.text) * len(places)
            for slot, holes in template.holes.items():
                uuids = self._uuids.take(self._row.take(places[:, slot]))
                for hole in holes:
                    _column(text, hole, len(template.text))[:] = uuids
            yield memoryview(text)[:-1]


def _column(text: bytearray, hole: int, length: int) -> npt.NDArray[np.bytes_]:
    """Return the uuids at one place in all lines of a text, to be written.

    As one item each, not as 36 characters: numpy copies items much faster.
    """
    lines = len(text) // length
    return np.ndarray((lines,), dtype="S36", buffer=text, offset=hole, strides=(length,))
