# SPDX-License-Identifier: Apache-2.0
"""The questions of contract page 98: alternatives, placing, how many fit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.placing.capacity import Fitting, fitting
from treeclaim.forest.placing.explanation import Outcome, explanation_of
from treeclaim.forest.placing.placer import Placer
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import (
    QueryError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
)
from treeclaim.model.extension.placing import Holder, Placement, Placing
from treeclaim.model.request import BodyForm, CandidateRequest, SearchOptions
from treeclaim.replica.asking import HeldAsked
from treeclaim.replica.questions import OnePiece, are_hard

_FORM = BodyForm()


def require_names_of(
    forest: Forest, requests: Mapping[str, CandidateRequest], budget: Budget
) -> None:
    """Check that all names in some queries exist.

    Args:
        forest: Where they are.
        requests: By where they stand in the call.
        budget: What the question may cost.

    Raises:
        QueryError: for the first that names what does not exist.
    """
    for where, request in requests.items():
        budget.check()
        try:
            require_known_names(forest, request)
        except (ResourceClassNotFoundError, TraitsNotFoundError) as error:
            raise QueryError(where, error) from error


class _OfRequests:
    """Questions with several requests, none of which is for consumers that are named."""

    __slots__ = ()
    requests: Mapping[str, CandidateRequest]

    @property
    def holds(self) -> HeldAsked:
        """Return what it asks about holds."""
        return HeldAsked.of(self.requests.values())

    @property
    def is_hard(self) -> bool:
        """Tell whether to skip the attempt in the worker itself."""
        return are_hard(self.requests.values())


@dataclass(frozen=True, slots=True)
class AlternativesQuestion(_OfRequests):
    """Which of some queries is the first that has a candidate, and which has it (section 3)?

    Attributes:
        requests: The queries, by where they stand.
        options: What the operator configured.
        key: See `key_of`.
    """

    requests: Mapping[str, CandidateRequest]
    options: SearchOptions
    key: bytes | None = None

    @property
    def is_repeatable(self) -> bool:
        """Tell whether the answer is the same as long as nothing changes."""
        return not self.options.randomize and not self.holds

    def begin(self, forest: Forest, budget: Budget) -> "_Alternatives":
        """Look whether all names exist.

        Raises:
            QueryError: for the first query that names what does not exist.
        """
        require_names_of(forest, self.requests, budget)
        return _Alternatives(forest, self, budget)


class _Alternatives:
    """The answer of the first query that has a candidate, in the making."""

    def __init__(self, forest: Forest, question: AlternativesQuestion, budget: Budget) -> None:
        self.candidates = 0
        self._forest = forest
        self._question = question
        self._budget = budget

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body."""
        for number, request in enumerate(self._question.requests.values()):
            answer = search(self._forest, request, self._question.options, _FORM, self._budget)
            pieces = answer.pieces()
            begin = [bytes(next(pieces)), bytes(next(pieces))]
            if answer.candidates:
                yield b'{"alternative":%d,' % number + begin[0][1:]
                yield begin[1]
                yield from pieces
                self.candidates = answer.candidates
                return
        # Clients that ask for an order read scores (page 98, section 2), even an empty list.
        is_ordered = any(request.order is not None for request in self._question.requests.values())
        scores = b'"scores":[],' if is_ordered else b""
        yield (
            b'{"alternative":null,"allocation_requests":[],' + scores + b'"provider_summaries":{}}'
        )


@dataclass(frozen=True, slots=True)
class PlacingQuestion:
    """Where are the consumers of a call placed (section 4)? The answer is a written `Outcome`.

    Attributes:
        placing: The call.
        holders: Consumers that hold something already.
        fixed: Placements that are to stay as they are.
        shows_held: Whether an explanation shows what holds have.
    """

    placing: Placing
    holders: Mapping[str, Holder]
    fixed: Sequence[Placement]
    shows_held: bool = False

    @property
    def key(self) -> None:
        """Say that nothing of it is remembered: consumers are placed once."""
        return

    @property
    def is_repeatable(self) -> bool:
        """Say that the answer is not kept."""
        return False

    @property
    def holds(self) -> HeldAsked:
        """Return what it asks about holds."""
        named = frozenset[str]().union(*(request.from_holds for request in self.placing.requests))
        return HeldAsked(named, everywhere=self.shows_held and self.placing.explain)

    @property
    def is_hard(self) -> bool:
        """Tell whether to skip the attempt in the worker itself."""
        return self.holds.everywhere or are_hard(
            query for request in self.placing.requests for query in request.alternatives
        )

    def begin(self, forest: Forest, budget: Budget) -> OnePiece:
        """Look whether all names exist.

        Raises:
            QueryError: for the first query that names what does not exist.
        """
        queries = {
            f"requests[{number}].alternatives[{at}]": query
            for number, request in enumerate(self.placing.requests)
            for at, query in enumerate(request.alternatives)
        }
        require_names_of(forest, queries, budget)
        return OnePiece(lambda: self._outcome(forest, budget).written())

    def _outcome(self, forest: Forest, budget: Budget) -> Outcome:
        placer = Placer(forest, self.placing, self.holders, budget, self.fixed)
        attempt = placer.placed()
        explanation = None
        if attempt.unplaced and self.placing.explain:
            explanation = explanation_of(placer, attempt, budget)
        return Outcome(attempt.placed, tuple(attempt.unplaced), explanation)


@dataclass(frozen=True, slots=True)
class CapacityQuestion(_OfRequests):
    """How many consumers of each of some requests fit (section 5)?

    Attributes:
        requests: The queries, by the names that the client gave them.
        fitting: What is asked of each.
        key: See `key_of`.
    """

    requests: Mapping[str, CandidateRequest]
    fitting: Fitting
    key: bytes | None = None

    @property
    def is_repeatable(self) -> bool:
        """Tell whether the answer is the same as long as nothing changes."""
        return not self.holds

    def begin(self, forest: Forest, budget: Budget) -> OnePiece:
        """Look whether all names exist.

        Raises:
            QueryError: for the first request that names what does not exist.
        """
        queries = {f"requests.{name}": request for name, request in self.requests.items()}
        require_names_of(forest, queries, budget)
        return OnePiece(lambda: self._written(forest, budget))

    def _written(self, forest: Forest, budget: Budget) -> bytes:
        count = len(self.requests)
        # A request that takes all its time leaves the others theirs.
        capacities = {
            name: fitting(forest, request, self.fitting.share(count - number), budget)
            for number, (name, request) in enumerate(self.requests.items())
        }
        return orjson.dumps({"capacity": capacities})
