# SPDX-License-Identifier: Apache-2.0
"""Members that the bodies of plans share (contract page 101, sections 4 and 5).

Every function raises ApiError, a 400 that says what is wrong, and where.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.request.schemas import (
    ALTERNATIVES,
    BOOLEAN,
    MANY_UUIDS,
    MOST_NAMED,
    POSITIVE,
    TYPE_NAME,
    UUID_PATTERN,
    Schema,
    mapping,
    record,
)
from treeclaim.api.protocol.request.validation import query_pairs
from treeclaim.api.resources.candidates.parameters import candidate_request
from treeclaim.api.resources.candidates.queries import Queries, refusing_queries
from treeclaim.api.resources.candidates.schemas import QUERY
from treeclaim.api.resources.placing.schemas import DOMAINS
from treeclaim.api.resources.planning.given import (
    GIVEN,
    LIST_RULE,
    domains_of,
    given_of,
    queries_of_given,
    refusing_entries,
    uuids_of,
)
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.planning import Given, PlanRule
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import Asked
from treeclaim.replica.kept import Piece
from treeclaim.replica.planning import Planner, plan_question

_MOST_RULES = 16

_GRACE = 30.0
"""Seconds beyond the deadline of plans until a child that does not finish is killed: it has to write its
answer then, and may be in a step that checks no clock."""

CONSUMER_TYPES: Schema = {
    "type": "array",
    "maxItems": 1_000,
    "items": {"type": "string", "pattern": TYPE_NAME},
}
"""Names of consumer types, and the word that stands for none."""

_RULE = record({"domains": DOMAINS, "consumers": MANY_UUIDS, "max_per_domain": POSITIVE})

MEMBERS: Mapping[str, Schema] = {
    "requests": mapping(f"^{UUID_PATTERN}$", ALTERNATIVES) | {"maxProperties": MOST_NAMED},
    "rules": {"type": "array", "maxItems": _MOST_RULES, "items": _RULE},
    "explain": BOOLEAN,
    "given": GIVEN,
}
"""Schemas of the members that all plans have."""


class _UnreadableError(TreeclaimError):
    """A stored query can no longer be read."""


@dataclass(frozen=True, slots=True)
class PlanCall:
    """The members that the calls for plans share, read.

    Attributes:
        given: What is assumed.
        rules: Rules for consumers that are placed again, or moved.
        requests: Queries of the call by consumer.
        read: The same, read, by where they stand.
        queries: Reads more queries of the call.
    """

    given: Given
    rules: tuple[PlanRule, ...]
    requests: Mapping[str, Sequence[str]]
    read: Mapping[str, CandidateRequest]
    queries: Queries


def asked_for_plan(call: Call) -> Asked:
    """Start the deadline of a plan, which also ends when its client hangs up."""
    seconds = call.services.limits.plan_seconds + _GRACE
    return Asked.now(seconds, call.client_gone, call.services.search.most_bytes)


def end_of_plan(call: Call, asked: Asked) -> float:
    """Return when the best plan so far is to be returned, by the monotonic clock."""
    return asked.begin + call.services.limits.plan_seconds


def plan_call(
    call: Call, body: Mapping[str, Any], asked: Asked, more: Iterable[str] = ()
) -> PlanCall:
    """Read what is common to plans; `more` are other queries of the call.

    Raises:
        ApiError: 400, 403.
    """
    call.require_allowed(LIST_RULE)
    requests = dict(_requests(body.get("requests", {})))
    texts = chain(chain.from_iterable(requests.values()), queries_of_given(body), more)
    queries = Queries(call, asked, texts)
    read = {
        f"requests.{consumer}[{number}]": queries.without_holds(
            f"requests.{consumer}[{number}]", text
        )
        for consumer, some in requests.items()
        for number, text in enumerate(some)
    }
    return PlanCall(
        given=given_of(call, body, queries),
        rules=tuple(map(_rule, body.get("rules", ()))),
        requests=requests,
        read=read,
        queries=queries,
    )


def _requests(given: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    seen: set[str] = set()
    for key, texts in given.items():
        (consumer,) = uuids_of([key])
        if consumer in seen:
            raise bad_request(f"requests: the consumer {consumer} is named twice.")
        seen.add(consumer)
        yield consumer, texts


def _rule(given: Mapping[str, Any]) -> PlanRule:
    return PlanRule(
        domains=domains_of(given["domains"]),
        consumers=frozenset(uuids_of(given["consumers"])),
        max_per_domain=int(given["max_per_domain"]),
    )


def planned(
    call: Call,
    read: PlanCall,
    planner: Planner,
    asked: Asked,
    named: frozenset[str] = frozenset(),
) -> Iterable[Piece]:
    """Make a plan.

    Args:
        call: The call.
        read: What it asks for.
        planner: Makes the plan.
        asked: When it came.
        named: Uuids of the holds whose amounts are asked for.

    Raises:
        ApiError: 400, 409.
        OverloadedError: if another plan is made.
    """
    most_groups = call.services.limits.request_groups
    version = call.version
    checker = QUERY.at(version)

    def kept(text: str) -> CandidateRequest:
        try:
            return candidate_request(query_pairs(text), version, checker, most_groups)
        except ApiError as error:
            raise _UnreadableError from error

    question = plan_question(read.given, planner, read.requests, read.read, kept, named=named)
    with refusing_queries(), refusing_entries(call.deadline):
        return call.services.replica.answer(question, asked)
