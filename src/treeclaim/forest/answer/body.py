# SPDX-License-Identifier: Apache-2.0
"""The answer to a request for candidates as JSON bytes (contract page 90, section 5).

The body is made of bytes, not objects. Candidates with the same pattern, that is, with the same slots on the
same providers, differ only in uuids, which have a fixed length. Each pattern is therefore serialized
once as a template. A block of candidates is a matrix of characters, in which one copy fills the columns
of each uuid. Summaries are fragments that the Forest keeps ready.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from treeclaim.forest.answer.summaries import Summaries
from treeclaim.forest.answer.templates import Template, patterns_of, template_of
from treeclaim.forest.order.ordered import Ranking
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.division import SplitCandidate
from treeclaim.forest.table.columns import Integers
from treeclaim.model.request import BodyForm

SLOTS_TOGETHER = 50_000
"""Slots of candidates that are written together, at some hundred bytes each: a few milliseconds."""

_MOST_HELD = 10_000
"""Candidates up to which the memory of a body counts as that of its search."""


class ResponseBody:
    """The body that answers one search, written piece by piece.

    Attributes:
        candidates: How many were written so far.
    """

    def __init__(
        self,
        problem: Problem,
        form: BodyForm,
        summaries: Summaries,
        blocks: Iterator[Any],
        ranking: Ranking | None = None,
    ) -> None:
        """Prepare a body.

        Args:
            problem: The request, related to the Forest.
            form: The form of the answer.
            summaries: The summaries of the body.
            blocks: The candidates: `Choices`, or for a `SplitAnswer` each `SplitCandidate`.
            ranking: Their scores, filled while blocks are drawn; None for an unordered request.
        """
        self.candidates = 0
        self._problem = problem
        self._form = form
        self._uuids = problem.forest.uuid.values
        self._summaries = summaries
        self._blocks = blocks
        self._ranking = ranking

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body: first the candidates, then the summaries of the trees they use."""
        yield b'{"allocation_requests":['
        separator = b""
        # An answer that must be sent whole is held until it is complete.
        wanted = self._problem.wanted
        is_short = wanted is not None and wanted <= _MOST_HELD
        is_held = (is_short and not self._problem.takes_turns) or bool(self._problem.plan.split)
        for piece in self._candidates():
            if separator:
                yield separator
            if is_held:
                self._problem.budget.hold(len(piece))
            yield piece
            separator = b","
        yield b"]"
        if self._ranking is not None:
            yield b',"scores":' + orjson.dumps(self._ranking.scores)
            if self._ranking.is_approximate:
                yield b',"approximate":true'
        yield b',"provider_summaries":{'
        yield from self._summaries.pieces()
        yield b"}}"

    def _candidates(self) -> Iterator[bytes | memoryview]:
        for block in self._blocks:
            self.candidates += len(block)
            self._summaries.note(block)
            rows = max(SLOTS_TOGETHER // max(block.shape[1], 1), 1)
            for start in range(0, len(block), rows):
                yield self._write_block(block[start : start + rows])

    def _write_block(self, block: Choices) -> memoryview:
        """Write a block of candidates, in order, with commas between them."""
        self._problem.budget.check()
        plan, form = self._problem.plan, self._form
        patterns = [
            (template_of(plan, pattern, form), rows) for pattern, rows in patterns_of(block)
        ]
        if len(patterns) == 1:
            text = self._alike(patterns[0][0], block)
        else:
            text = self._write_patterns(patterns, block)
        if b"\0" in text:
            # numpy pads uuids with that; an old database may have shorter ones than the API makes.
            text = text.replace(b"\0", b"")
        return memoryview(text)[:-1]

    def _alike(self, template: Template, block: Choices) -> bytearray:
        """Write candidates of one pattern, each with a comma behind it."""
        text = bytearray(template.text) * len(block)
        for slot, holes in template.holes.items():
            uuids = self._uuids.take(block[:, slot])
            for hole in holes:
                _items(text, uuids.dtype, hole)[:: len(template.text)] = uuids
        return text

    def _write_patterns(
        self, patterns: Sequence[tuple[Template, Integers | slice]], block: Choices
    ) -> bytearray:
        """Write candidates of several patterns: those of each together, then where they belong."""
        lengths = np.empty(len(block), dtype=np.int64)
        for template, rows in patterns:
            lengths[rows] = len(template.text)
        ends = lengths.cumsum()
        begins = ends - lengths
        text = bytearray(int(ends[-1]))
        for template, rows in patterns:
            self._problem.budget.check()
            candidate = np.dtype(f"V{len(template.text)}")
            alike = np.frombuffer(self._alike(template, block[rows]), dtype=candidate)
            _items(text, candidate)[begins[rows]] = alike
        return text


class SplitAnswer(ResponseBody):
    """The body of a search in which several providers may give one amount."""

    def _candidates(self) -> Iterator[bytes]:
        plan, forest = self._problem.plan, self._problem.forest
        candidates: list[SplitCandidate] = list(self._blocks)
        positions = {
            position
            for candidate in candidates
            for position in (*candidate.positions(plan), *candidate.chosen)
        }
        uuids = {position: forest.uuid_of(position) for position in positions}
        self.candidates = len(candidates)
        for candidate in candidates:
            self._summaries.note_positions(candidate.positions(plan))
            yield candidate.written(plan, uuids)


def _items(text: bytearray, kind: np.dtype[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Return what begins at each byte of a text from an offset on, to be written.

    As one item each, not as single characters: numpy copies items much faster.
    """
    count = len(text) - offset - kind.itemsize + 1
    return np.ndarray((count,), dtype=kind, buffer=text, offset=offset, strides=(1,))
