# SPDX-License-Identifier: Apache-2.0
"""The questions that can take long: candidates, explanations, alternatives, placing, capacity."""

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
from treeclaim.forest.placing.placer import Placer
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import (
    ProviderNotFoundError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
)
from treeclaim.model.extension.placing import Holder, Placing
from treeclaim.model.microversions import Version
from treeclaim.model.query.errors import QueryError
from treeclaim.model.request import BodyForm, CandidateRequest, SearchOptions
from treeclaim.replica.question import HoldsQuery, PendingAnswer, Question

_FEW_GROUPS = 32
"""Request groups up to which a search is tried in the turn. Flavors with devices have a dozen; with very many, single
steps of a search may be long, between which nothing checks the clock."""

_FEW_LISTS = 32
"""Lists of `same_subtree` up to which the same holds: to plan with 500 takes ten milliseconds."""

_FEW_PARTS = 512
"""Classes, sets of traits and sets of aggregates of all groups, as well: a dozen for each of some groups."""

_DIGEST_BYTES = 16
"""Bytes of the key of a question: two that differ do not meet by chance, and it takes no memory."""

_FORM = BodyForm()


def key_of(kind: str, version: Version, *parts: str) -> bytes:
    """Return a short key of a question of a kind, given all that its answer depends on, the version included."""
    at = f"{version.minor} {version.is_extended}"
    text = "\0".join((kind, at, *parts)).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def are_hard(requests: Iterable[CandidateRequest]) -> bool:
    """Tell whether any of some searches is not even tried in the turn."""
    return any(map(_is_hard, requests))


def _is_hard(request: CandidateRequest) -> bool:
    if request.can_split or len(request.groups) > _FEW_GROUPS:
        return True
    parts = sum(
        [
            len(group.resources)
            + len(group.conditions.required)
            + len(group.conditions.member_of)
            + len(group.conditions.where)
            for group in request.groups
        ]
    )
    lists = len(request.same_subtree) + len(request.values)
    return lists > _FEW_LISTS or parts > _FEW_PARTS


def require_names_of(
    forest: Forest, requests: Mapping[str, CandidateRequest], budget: Budget
) -> None:
    """Check that all names in some queries, by their positions in the call, exist.

    Raises:
        QueryError: for the first query with a name that does not exist.
    """
    for where, request in requests.items():
        budget.check()
        try:
            require_known_names(forest, request)
        except (ResourceClassNotFoundError, TraitsNotFoundError) as error:
            raise QueryError(where, error) from error


def candidate_question(
    request: CandidateRequest, options: SearchOptions, form: BodyForm, key: bytes | None = None
) -> Question:
    """Ask for the combinations of providers that satisfy a request (contract page 90)."""

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        return _pieces_of(search(forest, request, options, form, budget))

    return Question(
        work,
        key,
        HoldsQuery(frozenset(request.from_holds)),
        # Holds change without a change of the Forest.
        is_repeatable=not options.randomize and not request.from_holds,
        is_hard=_is_hard(request),
    )


def _pieces_of(answer: ResponseBody) -> PendingAnswer:
    yield from answer.pieces()
    return answer.candidates


def explain_question(
    request: CandidateRequest, focus: Focus, key: bytes | None = None, *, shows_held: bool = False
) -> Question:
    """Ask why a request has the candidates that it has (contract page 97, section 3).

    A tree of the focus that does not exist raises ProviderNotFoundError. With `shows_held`, the answer has the amounts
    of holds.
    """

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        if focus.tree is not None and forest.row_of(focus.tree) is None:
            raise ProviderNotFoundError(focus.tree)
        yield orjson.dumps(explain_request(forest, request, focus, budget))
        return 0

    held = HoldsQuery.of((request,), everywhere=shows_held)
    # It takes many searches.
    return Question(work, key, held, is_repeatable=not held, is_hard=True)


def alternatives_question(
    requests: Mapping[str, CandidateRequest], options: SearchOptions, key: bytes | None = None
) -> Question:
    """Ask for the candidates of the first of some queries that has any (contract page 98, section 3).

    Queries have the keys by which a QueryError names them if a name in them does not exist.
    """

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        require_names_of(forest, requests, budget)
        return _write_alternatives(forest, list(requests.values()), options, budget)

    held = HoldsQuery.of(requests.values())
    return Question(
        work,
        key,
        held,
        is_repeatable=not options.randomize and not held,
        is_hard=are_hard(requests.values()),
    )


def _write_alternatives(
    forest: Forest, requests: Sequence[CandidateRequest], options: SearchOptions, budget: Budget
) -> PendingAnswer:
    """Yield the answer of the first query that has a candidate."""
    for number, request in enumerate(requests):
        answer = search(forest, request, options, _FORM, budget)
        pieces = answer.pieces()
        first, second = bytes(next(pieces)), bytes(next(pieces))
        if answer.candidates:
            yield b'{"alternative":%d,' % number + first[1:]
            yield second
            yield from pieces
            return answer.candidates
    # Clients that ask for an order read scores (page 98, section 2), even an empty list.
    is_ordered = any(request.order is not None for request in requests)
    scores = b'"scores":[],' if is_ordered else b""
    yield b'{"alternative":null,"allocation_requests":[],' + scores + b'"provider_summaries":{}}'
    return 0


def placing_question(
    placing: Placing,
    holders: Mapping[str, Holder],
    *,
    shows_held: bool = False,
) -> Question:
    """Ask where the consumers of a call are placed (contract page 98, section 4).

    The answer is a serialized `Outcome`. It is never kept: consumers are placed once. A name that does not exist
    raises QueryError. With `shows_held`, an explanation has the amounts of holds.
    """
    queries = {
        f"requests[{number}].alternatives[{at}]": query
        for number, request in enumerate(placing.requests)
        for at, query in enumerate(request.alternatives)
    }

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        require_names_of(forest, queries, budget)
        placer = Placer(forest, placing, holders, budget)
        attempt = placer.place_all()
        explanation = None
        if attempt.unplaced and placing.explain:
            explanation = explain_attempt(placer, attempt, budget)
        yield PlacingOutcome(attempt.placed, tuple(attempt.unplaced), explanation).serialize()
        return 0

    named = frozenset[str]().union(*(request.from_holds for request in placing.requests))
    held = HoldsQuery(named, everywhere=shows_held and placing.explain)
    return Question(work, holds=held, is_hard=held.everywhere or are_hard(queries.values()))


def capacity_question(
    requests: Mapping[str, CandidateRequest], limits: CapacityLimits
) -> Question:
    """Ask how many consumers of each of some requests fit (contract page 98, section 5).

    Queries have the names that the client gave them. A name in them that does not exist raises QueryError.
    """
    queries = {f"requests.{name}": request for name, request in requests.items()}

    def work(forest: Forest, _: Iterator[Any], budget: Budget) -> PendingAnswer:
        require_names_of(forest, queries, budget)
        count = len(requests)
        # A request that takes all its time leaves the others theirs.
        capacities = {
            name: count_capacity(forest, request, limits.share(count - number), budget)
            for number, (name, request) in enumerate(requests.items())
        }
        yield orjson.dumps({"capacity": capacities})
        return 0

    return Question(
        work, holds=HoldsQuery.of(requests.values()), is_hard=are_hard(requests.values())
    )
