# SPDX-License-Identifier: Apache-2.0
"""Builds the questions that may take long: candidates, explanations, alternatives, placing, capacity."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from treeclaim.forest.answer.body import ResponseBody
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.placing.explanation import PlacingOutcome, explain_attempt
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import (
    ProviderNotFoundError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
)
from treeclaim.model.extension.placing import PlacedConsumer, PlacingCall
from treeclaim.model.microversions import Version
from treeclaim.model.query.value_parsers import QueryError
from treeclaim.model.request import BodyForm, CandidateRequest, SearchOptions
from treeclaim.replica.question import HoldsQuery, PendingAnswer, Question

_MOST_GROUPS = 32
"""Most request groups of a search in the turn. Flavors with devices have a dozen. With very many groups, a step of
the search may be long, and the search checks the clock only between steps."""

_MOST_LISTS = 32
"""Most lists of `same_subtree` and comparisons of a search in the turn; 500 lists need ten milliseconds."""

_MOST_CONDITIONS = 512
"""Most classes, conditions on traits and aggregates, and expressions in all groups of a search in the turn."""

_DIGEST_BYTES = 16
"""Bytes of a question's key, without collisions in practice."""

_FORM = BodyForm()


def make_question_key(kind: str, version: Version, *parts: str) -> bytes:
    """Return a digest of a question: its kind, its version and all texts on which the answer depends."""
    version_text = f"{version.minor} {version.is_extended}"
    text = "\0".join((kind, version_text, *parts)).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def is_any_hard(requests: Iterable[CandidateRequest]) -> bool:
    """Return whether any of the searches is too hard for an attempt in the turn."""
    return any(map(_is_hard, requests))


def _is_hard(request: CandidateRequest) -> bool:
    if request.can_split or len(request.groups) > _MOST_GROUPS:
        return True
    conditions = sum(
        [
            len(group.resources)
            + len(group.conditions.required)
            + len(group.conditions.member_of)
            + len(group.conditions.where)
            for group in request.groups
        ]
    )
    lists = len(request.same_subtree) + len(request.values)
    return lists > _MOST_LISTS or conditions > _MOST_CONDITIONS


def require_names(
    forest: Forest, requests: Mapping[str, CandidateRequest], budget: Budget
) -> None:
    """Check that all names in queries exist; the keys are the queries' positions in the call.

    Raises:
        QueryError: for the first query with an unknown name.
    """
    for position, request in requests.items():
        budget.check()
        try:
            require_known_names(forest, request)
        except (ResourceClassNotFoundError, TraitsNotFoundError) as error:
            raise QueryError(position, error) from error


def candidate_question(
    request: CandidateRequest, options: SearchOptions, form: BodyForm, key: bytes | None = None
) -> Question:
    """Return the question for the candidates of a request (contract page 90)."""

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        return _yield_pieces(search(forest, request, options, form, budget))

    holds = HoldsQuery.of((request,))
    return Question(
        work,
        key,
        holds,
        # Holds may change while the Forest does not.
        is_repeatable=not options.randomize and not holds,
        is_hard=_is_hard(request),
    )


def _yield_pieces(answer: ResponseBody) -> PendingAnswer:
    yield from answer.pieces()
    yield answer.candidates


def explain_question(
    request: CandidateRequest, focus: Focus, key: bytes | None = None, *, shows_held: bool = False
) -> Question:
    """Return the question for an explanation of a request (contract page 97, section 3).

    An unknown tree of the focus raises ProviderNotFoundError. With `shows_held`, the answer has the amounts of holds.
    """

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        if focus.tree is not None and forest.row_of(focus.tree) is None:
            raise ProviderNotFoundError(focus.tree)
        yield orjson.dumps(explain_request(forest, request, focus, budget))

    holds = HoldsQuery.of((request,), has_sums=shows_held)
    # An explanation needs many searches.
    return Question(work, key, holds, is_repeatable=not holds, is_hard=True)


def alternatives_question(
    requests: Mapping[str, CandidateRequest], options: SearchOptions, key: bytes | None = None
) -> Question:
    """Return the question for the candidates of the first query that has any (contract page 98, section 3).

    The keys are the queries' positions in the call. An unknown name raises QueryError.
    """

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        require_names(forest, requests, budget)
        return _write_alternatives(forest, list(requests.values()), options, budget)

    holds = HoldsQuery.of(requests.values())
    return Question(
        work,
        key,
        holds,
        is_repeatable=not options.randomize and not holds,
        is_hard=is_any_hard(requests.values()),
    )


def _write_alternatives(
    forest: Forest, requests: Sequence[CandidateRequest], options: SearchOptions, budget: Budget
) -> PendingAnswer:
    for number, request in enumerate(requests):
        answer = search(forest, request, options, _FORM, budget)
        pieces = answer.pieces()
        opening, candidates = bytes(next(pieces)), bytes(next(pieces))
        if answer.candidates:
            yield b'{"alternative":%d,' % number + opening[1:]
            yield candidates
            yield from pieces
            yield answer.candidates
            return
    # A response to an ordered query has scores (page 98, section 2), even without candidates.
    is_ordered = any(request.order is not None for request in requests)
    scores = b'"scores":[],' if is_ordered else b""
    yield b'{"alternative":null,"allocation_requests":[],' + scores + b'"provider_summaries":{}}'


def placing_question(placing: PlacingCall, holders: Mapping[str, PlacedConsumer]) -> Question:
    """Return the question for the placements of a call (contract page 98, section 4).

    The answer is a serialized `PlacingOutcome`, which is not cached. An unknown name raises QueryError.
    """
    queries = {
        f"requests[{number}].alternatives[{index}]": query
        for number, request in enumerate(placing.requests)
        for index, query in enumerate(request.alternatives)
    }

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        require_names(forest, queries, budget)
        placer = ConsumerPlacer(forest, placing, holders, budget)
        attempt = placer.place_all()
        explanation = None
        if attempt.unplaced and placing.explain:
            explanation = explain_attempt(placer, attempt, budget)
        yield PlacingOutcome(attempt.placed, tuple(attempt.unplaced), explanation).serialize()

    holds = HoldsQuery.of(placing.requests, has_sums=placing.explain)
    return Question(work, holds=holds, is_hard=placing.explain or is_any_hard(queries.values()))


def capacity_question(
    requests: Mapping[str, CandidateRequest], limits: CapacityLimits
) -> Question:
    """Return the question for the number of consumers that fit, by the client's name of a request.

    The rules are those of contract page 98, section 5. An unknown name in a query raises QueryError.
    """
    queries = {f"requests.{name}": request for name, request in requests.items()}

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        require_names(forest, queries, budget)
        count = len(requests)
        # A fixed share of the time prevents a long request from using up the time of the others.
        capacities = {
            name: count_capacity(forest, request, limits.share(count - number), budget)
            for number, (name, request) in enumerate(requests.items())
        }
        yield orjson.dumps({"capacity": capacities})

    return Question(
        work, holds=HoldsQuery.of(requests.values()), is_hard=is_any_hard(requests.values())
    )
