# SPDX-License-Identifier: Apache-2.0
"""The response to a request for candidates as JSON bytes (contract page 90, sections 4 and 5).

The body is composed of bytes, not objects. Candidates with the same pattern, that is, with the same
slots on the same providers, differ only in UUIDs, which have a fixed length. Each pattern is
therefore serialized once as a template. A block of candidates is a matrix of characters, in which
one copy fills the columns of each UUID. Summaries are texts that the Forest caches.

Below microversion 1.29 summaries show the providers of all candidates, including those that the
limit cuts off.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from treeclaim.forest.answer.templates import Template, find_template, split_by_pattern
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.order.ordered_search import Ranking
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.combine import first_candidates, select_candidates
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.divisions import SplitCandidate
from treeclaim.forest.table.columns import Integers, Mask, Trees, expand_ranges
from treeclaim.forest.table.texts import summary_fragment
from treeclaim.model.request import NO_GROUP, BodyForm

TREES_IN_A_PIECE = 16_384
"""Trees whose summaries are written as one piece."""


class Summaries:
    """Collects the trees and providers of candidates, and serializes their summaries.

    From 1.29 on, the body shows all providers of every tree with allocations of a returned candidate.
    Before, it shows the providers with allocations of any candidate; under a limit, only those in the
    trees of returned candidates.
    """

    def __init__(self, problem: Problem, form: BodyForm) -> None:
        self._problem = problem
        self._forest = problem.forest
        self._form = form
        self._order = problem.order
        self._tree_used: Mask = np.zeros(len(self._order.roots), dtype=np.bool_)
        # Only the older form depends on single providers.
        provider_count = 0 if form.nested else self._forest.row_count
        self._provider_used: Mask = np.zeros(provider_count, dtype=np.bool_)

    def add_trees(self, block: Choices) -> None:
        """Add the trees of returned candidates."""
        for slot in self._problem.giving:
            self._tree_used[self._order.tree.take(block[:, slot])] = True

    def add_trees_of_providers(self, positions: Sequence[int]) -> None:
        """Add the trees of providers of a returned candidate."""
        self._tree_used[self._order.tree[positions]] = True

    def add_providers(self, block: Choices) -> None:
        """Add the providers of candidates that the limit may still cut off."""
        self._provider_used[block[:, self._problem.giving]] = True

    def pieces(self) -> Iterator[bytes]:
        """Yield the members of `provider_summaries`, in the canonical order of providers."""
        trees = np.flatnonzero(self._tree_used)
        for start in range(0, len(trees), TREES_IN_A_PIECE):
            batch = trees[start : start + TREES_IN_A_PIECE]
            self._problem.budget.check()
            if start:
                yield b","
            if self._form.nested:
                check = self._problem.budget.check
                yield self._forest.summaries.joined(batch, self._order, check)
            else:
                yield self._write_older(batch)

    def _write_older(self, trees: Trees) -> bytes:
        roots = self._order.roots[trees]
        positions = expand_ranges(roots, self._order.end[roots] - roots)
        used_positions = positions[self._provider_used[positions]]
        requested = {name for slot in self._problem.plan.slots for name in slot.resources}
        return b",".join(
            [
                summary_fragment(
                    self._forest.provider(row),
                    self._forest.amounts(row),
                    self._forest.traits(row),
                    self._form,
                    requested,
                )
                for row in used_positions.tolist()
            ]
        )


def limit_below_1_29(
    problem: Problem, candidates: Iterator[Choices], summaries: Summaries
) -> Iterator[Choices]:
    """Yield the candidates within the limit, and add the providers of all candidates to the summaries.

    The operator's maximum bounds the number of candidates.
    """
    every = _add_providers(first_candidates(candidates, problem.options.maximum), summaries)
    for block in select_candidates(problem, every):
        problem.budget.hold(block.nbytes)
        yield block
    for _ in every:
        problem.budget.check()


def _add_providers(blocks: Iterator[Choices], summaries: Summaries) -> Iterator[Choices]:
    for block in blocks:
        summaries.add_providers(block)
        yield block


SLOTS_TOGETHER = 50_000
"""Slots of candidates in one piece, at some hundred bytes each: a few milliseconds."""

_MOST_HELD = 10_000
"""Candidates up to which the memory of a body counts as that of its search."""


class ResponseBody:
    """The body that answers one search, written piece by piece.

    `blocks` yields `Choices`, or for a `SplitAnswer` each `SplitCandidate`. `ranking` receives their
    scores while they are drawn; it is None for an unordered request.

    Attributes:
        candidates: The number of candidates written so far.
    """

    def __init__(
        self,
        problem: Problem,
        form: BodyForm,
        summaries: Summaries,
        blocks: Iterator[Any],
        ranking: Ranking | None = None,
    ) -> None:
        self.candidates = 0
        self._problem = problem
        self._form = form
        self._uuids = problem.forest.uuid.values
        self._summaries = summaries
        self._blocks = blocks
        self._ranking = ranking

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body: the candidates, then the summaries of their trees."""
        yield b'{"allocation_requests":['
        separator = b""
        # A body that is sent as a whole stays in memory until it is complete.
        wanted_count = self._problem.wanted_count
        is_short = wanted_count is not None and wanted_count <= _MOST_HELD
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
            self._summaries.add_trees(block)
            rows = max(SLOTS_TOGETHER // max(block.shape[1], 1), 1)
            for start in range(0, len(block), rows):
                yield self._write_block(block[start : start + rows])

    def _write_block(self, block: Choices) -> memoryview:
        """Write candidates in order, joined by commas."""
        self._problem.budget.check()
        plan, form = self._problem.plan, self._form
        patterns = [
            (find_template(plan, pattern, form), rows) for pattern, rows in split_by_pattern(block)
        ]
        if len(patterns) == 1:
            text = self._write_alike(patterns[0][0], block)
        else:
            text = self._write_patterns(patterns, block)
        if b"\0" in text:
            # numpy pads UUIDs with zeros; an old database may have shorter ones than the API makes.
            text = text.replace(b"\0", b"")
        return memoryview(text)[:-1]

    def _write_alike(self, template: Template, block: Choices) -> bytearray:
        """Write candidates of one pattern, each followed by a comma."""
        text = bytearray(template.text) * len(block)
        for slot, holes in template.holes.items():
            uuids = self._uuids.take(block[:, slot])
            for hole in holes:
                _view_items(text, uuids.dtype, hole)[:: len(template.text)] = uuids
        return text

    def _write_patterns(
        self, patterns: Sequence[tuple[Template, Integers | slice]], block: Choices
    ) -> bytearray:
        lengths = np.empty(len(block), dtype=np.int64)
        for template, rows in patterns:
            lengths[rows] = len(template.text)
        ends = lengths.cumsum()
        begins = ends - lengths
        text = bytearray(int(ends[-1]))
        for template, rows in patterns:
            self._problem.budget.check()
            candidate = np.dtype(f"V{len(template.text)}")
            alike = np.frombuffer(self._write_alike(template, block[rows]), dtype=candidate)
            _view_items(text, candidate)[begins[rows]] = alike
        return text


class CandidateBody(NamedTuple):
    """A candidate as clients see it: amounts by provider UUID and class, and provider UUIDs by suffix."""

    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]


ServedGroup = tuple[str, int]
"""Suffix of a group, and the row of a provider that serves it."""


def list_allocations(
    plan: Plan, chosen_rows: Sequence[int], parts: Sequence[tuple[str, int, int]] = ()
) -> tuple[list[Allocation], list[ServedGroup]]:
    """Return the allocations of a candidate, and the groups that its providers serve.

    `chosen_rows` holds rows by slot; `parts` the class, row and units of each part of divided amounts.
    """
    allocations: list[Allocation] = []
    served_groups: list[ServedGroup] = []
    for slot, row in zip(plan.slots, chosen_rows, strict=True):
        served_groups.append((slot.suffix, row))
        allocations += [(row, name, units) for name, units in slot.resources.items()]
    for name, row, units in parts:
        served_groups.append((NO_GROUP, row))
        allocations.append((row, name, units))
    return allocations, served_groups


def candidate_body(
    allocations: Iterable[Allocation],
    served_groups: Collection[ServedGroup],
    uuid_of: Callable[[int], str],
) -> CandidateBody:
    """Return a candidate as clients see it."""
    uuids = {row: uuid_of(row) for _, row in served_groups}
    amounts: dict[str, dict[str, int]] = {}
    for row, name, units in allocations:
        units_by_class = amounts.setdefault(uuids[row], {})
        units_by_class[name] = units_by_class.get(name, 0) + units
    mappings: dict[str, dict[str, None]] = {}
    for suffix, row in served_groups:
        mappings.setdefault(suffix, {})[uuids[row]] = None
    return CandidateBody(amounts, {suffix: list(each) for suffix, each in mappings.items()})


class SplitAnswer(ResponseBody):
    """The body of a search that divides amounts over several providers."""

    def _candidates(self) -> Iterator[bytes]:
        plan, uuid_of = self._problem.plan, cache(self._problem.forest.uuid_of)
        candidates: list[SplitCandidate] = list(self._blocks)
        self.candidates = len(candidates)
        for candidate in candidates:
            allocations, served_groups = list_allocations(
                plan, candidate.chosen_rows, candidate.parts
            )
            self._summaries.add_trees_of_providers([row for row, _, _ in allocations])
            amounts, mappings = candidate_body(allocations, served_groups, uuid_of)
            resources = {uuid: {"resources": of_uuid} for uuid, of_uuid in amounts.items()}
            yield orjson.dumps({"allocations": resources, "mappings": mappings})


def _view_items(text: bytearray, kind: np.dtype[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Return a writable view of the items that begin at each byte of a text from an offset on.

    numpy copies whole items much faster than single characters.
    """
    count = len(text) - offset - kind.itemsize + 1
    return np.ndarray((count,), dtype=kind, buffer=text, offset=offset, strides=(1,))
