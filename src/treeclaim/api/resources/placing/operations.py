# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/candidates, …/placements and …/capacity (contract page 98, sections 3 to 5)."""

import time
from http import HTTPStatus
from itertools import chain
from typing import Annotated, Any, Literal

from oslo_config import cfg
from pydantic import ConfigDict, Field, model_validator

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Answer, Call, DescribedResponse, operation
from treeclaim.api.protocol.request.bodies import (
    OR_NULL,
    Alternatives,
    Body,
    ConsumerUuid,
    Domains,
    HoldUuids,
    Parts,
    Positive,
    Query,
    ShortText,
    list_length,
)
from treeclaim.api.protocol.request.schemas import AMOUNTS, CLASS_NAME, ROOTS, Shape
from treeclaim.api.protocol.request.validation import MOST_VALUES
from treeclaim.api.resources.allocations import hold_terms, kept_requests
from treeclaim.api.resources.allocations.hold_terms import HoldBody
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.candidates.operations import require_may_draw, start_search
from treeclaim.api.resources.candidates.queries import QueryParser
from treeclaim.api.resources.candidates.schemas import TYPE_UNLESS_HOLD
from treeclaim.api.resources.placing.placements import Placer
from treeclaim.api.resources.planning.assumptions import (
    ASSUMED,
    QuestionBody,
    answer_question,
    read_assumptions,
)
from treeclaim.forest.placing.capacity import CapacityLimits
from treeclaim.model.claim import HOLD_TYPE
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest, PlacingRule
from treeclaim.replica.questions import alternatives_question, capacity_question, make_question_key

_MOST_REQUESTS = 64
_MOST_OTHERS = 1_000
_MOST_SKEW = 1_000
_KINDS = ("max_per_domain", "max_skew", "same_domain")

NamedQueries = Annotated[dict[str, Query], Field(min_length=1, max_length=256)]
"""Queries by names of the client's choice."""


class AlternativesBody(QuestionBody):
    """Alternative queries; the first with a candidate applies."""

    alternatives: Alternatives


class PlacementRequest(Body):
    """Consumers to place by the same queries."""

    model_config = ConfigDict(json_schema_extra=TYPE_UNLESS_HOLD)

    alternatives: Alternatives
    consumers: Annotated[tuple[ConsumerUuid, ...], list_length(1)]
    project_id: ShortText
    user_id: ShortText
    consumer_type: Annotated[ShortText, Field(pattern=CLASS_NAME)] | None = None
    hold: HoldBody | None = OR_NULL
    from_holds: HoldUuids = ()


class PlacementRule(Body):
    """A rule between placements, of one kind."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [kind]} for kind in _KINDS]}
    )

    domains: Domains
    max_per_domain: Positive | None = None
    max_skew: Annotated[int, Field(ge=1, le=_MOST_SKEW)] | None = None
    same_domain: Literal[True] | None = None
    others: Annotated[tuple[ConsumerUuid, ...], list_length(0, _MOST_OTHERS)] = Field(
        (), alias="with"
    )
    requests: Annotated[frozenset[Annotated[int, Field(ge=0)]], Field(strict=False)] | None = None
    soft: bool = False

    @model_validator(mode="before")
    @classmethod
    def _check_kind(cls, value: Any) -> Any:
        if isinstance(value, dict) and sum(kind in value for kind in _KINDS) != 1:
            raise ValueError("one of 'max_per_domain', 'max_skew' and 'same_domain' is required")
        return value


class PlacementsBody(QuestionBody):
    """Consumers to place, and the rules between them."""

    requests: Annotated[tuple[PlacementRequest, ...], list_length(1, _MOST_REQUESTS)]
    rules: Annotated[tuple[PlacementRule, ...], list_length()] = ()
    partial: bool = False
    dry_run: bool = False
    explain: bool = False


class CapacityBody(QuestionBody):
    """Queries of consumers to count."""

    requests: NamedQueries
    domains: Domains | None = None
    limit: Parts = 1_000


FOUND_CANDIDATES: Shape = {"alternative": int | None, **candidates.CANDIDATES, "given?": ASSUMED}
"""The candidates of the first query that has any."""

_PLACED: Shape = {
    "placements": [
        {
            "consumer": str,
            "alternative": int,
            "root_providers": ROOTS,
            "allocations": {str: {"resources": AMOUNTS}},
            "mappings": dict | None,
            "dropped": [int],
            "consumer_generation": int | None,
            "approximate?": bool,
        }
    ],
    "unplaced": [str],
    "explanation?": candidates.EXPLANATION,
    "given?": ASSUMED,
}

PLACED = DescribedResponse(HTTPStatus.CREATED, _PLACED, has_cache_headers=False)
NOTHING_WRITTEN = DescribedResponse(shows=_PLACED, has_cache_headers=False)
"""The response of a dry run, or if all consumers were placed before."""

CAPACITY: Shape = {
    "capacity": {
        str: {
            "fits": int,
            "at_most": int | None,
            "when_empty": int,
            "complete": bool,
            "domains?": [{"uuid": str, "name": str | None, "fits": int}],
        }
    },
    "given?": ASSUMED,
}


_SHARE_OF_TIME = 0.8
"""Share of the deadline that is for counting; the remainder is for serializing the answer."""


@operation(
    "POST /treeclaim/candidates",
    policy="placement:allocation_candidates:list",
    shows=FOUND_CANDIDATES,
    is_read_only=True,
)
def find_alternatives(call: Call, body: AlternativesBody) -> Answer:
    """List the candidates of the first query that has any."""
    texts = body.alternatives
    arrival = start_search(call)
    queries = QueryParser(call, arrival, [*texts, *body.placed_queries])
    requests = {
        f"alternatives[{number}]": queries.parse(f"alternatives[{number}]", query)
        for number, query in enumerate(texts)
    }
    require_may_draw(call, *requests.values())
    assumptions = read_assumptions(call, body, queries)
    parts = (*texts, *queries.mixes.texts)
    key = None if assumptions else make_question_key("alternatives", call.version, *parts)
    question = alternatives_question(requests, call.services.search, key)
    return answer_question(call, question, assumptions, arrival)


@operation(
    "POST /treeclaim/placements",
    policy="treeclaim:placements:create",
    responses=(PLACED, NOTHING_WRITTEN),
    most_values=MOST_VALUES,
    always_checks_accept=True,
)
def place_consumers(call: Call, body: PlacementsBody) -> Answer:
    """Place consumers, and claim their allocations in one transaction."""
    arrival = start_search(call)
    texts = chain.from_iterable(request.alternatives for request in body.requests)
    queries = QueryParser(call, arrival, chain(texts, body.placed_queries))
    placing_call = read_placing(call, body, queries)
    assumptions = read_assumptions(call, body, queries)
    if assumptions and not body.dry_run:
        raise bad_request("'given' needs 'dry_run'.")
    placer = Placer(call, placing_call, arrival, is_dry=body.dry_run, assumptions=assumptions)
    return placer.place()


@operation(
    "POST /treeclaim/capacity",
    policy="placement:allocation_candidates:list",
    shows=CAPACITY,
    has_cache_headers=False,
    is_read_only=True,
)
def count_fitting(call: Call, body: CapacityBody) -> Answer:
    """Count the consumers that fit for each query."""
    arrival = start_search(call)
    queries = QueryParser(call, arrival, [*body.requests.values(), *body.placed_queries])
    seconds = arrival.seconds
    limits = CapacityLimits(
        domains=body.domains,
        limit=body.limit,
        end=None if seconds is None else time.monotonic() + _SHARE_OF_TIME * seconds,
    )
    requests = {
        name: queries.parse(f"requests.{name}", query) for name, query in body.requests.items()
    }
    require_may_draw(call, *requests.values())
    assumptions = read_assumptions(call, body, queries)
    return answer_question(call, capacity_question(requests, limits), assumptions, arrival)


def read_placing(call: Call, body: PlacementsBody, queries: QueryParser) -> PlacingCall:
    """Read a call that places consumers, and check its bounds first.

    Raises:
        ApiError: 400, 403.
    """
    _require_few(body, call.services.options)
    requests = tuple(
        _read_request(call, queries, f"requests[{number}]", request)
        for number, request in enumerate(body.requests)
    )
    rules = tuple(
        _read_rule(f"rules[{number}]", rule, len(requests))
        for number, rule in enumerate(body.rules)
    )
    placing_call = PlacingCall(requests, rules, partial=body.partial, explain=body.explain)
    _require_disjoint(placing_call)
    _require_one_place(placing_call)
    return placing_call


def _require_few(body: PlacementsBody, options: cfg.ConfigOpts.GroupAttr) -> None:
    consumers = sum(len(request.consumers) for request in body.requests)
    if consumers > options.max_placing_consumers:
        raise bad_request(
            f"{consumers} consumers are more than {options.max_placing_consumers} "
            "([treeclaim]/max_placing_consumers)."
        )
    if len(body.rules) > options.max_placing_rules:
        raise bad_request(
            f"{len(body.rules)} rules are more than {options.max_placing_rules} "
            "([treeclaim]/max_placing_rules)."
        )


def _read_request(
    call: Call, queries: QueryParser, place: str, request: PlacementRequest
) -> PlacingRequest:
    hold = hold_terms.read_hold(call, request.hold)
    consumer_type = hold_terms.require_type(request.consumer_type, hold)
    if consumer_type == HOLD_TYPE and hold is None:
        raise bad_request(f"{place}: only a hold has the type {HOLD_TYPE}.")
    placing_request = PlacingRequest(
        alternatives=tuple(
            queries.parse_without_holds(f"{place}.alternatives[{number}]", query)
            for number, query in enumerate(request.alternatives)
        ),
        consumers=request.consumers,
        project_id=request.project_id,
        user_id=request.user_id,
        consumer_type=consumer_type,
        from_holds=request.from_holds,
        hold=hold,
        texts=kept_requests.select_storable_request(request.alternatives),
    )
    require_may_draw(call, placing_request)
    return placing_request


def _read_rule(place: str, rule: PlacementRule, count: int) -> PlacingRule:
    requests = frozenset(range(count)) if rule.requests is None else rule.requests
    if any(request >= count for request in requests):
        raise bad_request(f"{place}: 'requests' names a request that is not in the call.")
    if rule.same_domain and rule.soft:
        raise bad_request(f"{place}: 'same_domain' cannot be soft.")
    return PlacingRule(
        domains=rule.domains or None,
        max_per_domain=rule.max_per_domain,
        max_skew=rule.max_skew,
        same_domain=bool(rule.same_domain),
        others=tuple(dict.fromkeys(rule.others)),
        requests=requests,
        soft=rule.soft,
    )


def _require_disjoint(placing_call: PlacingCall) -> None:
    """Raise a 400 for a consumer that is named twice, is in `with`, or is a source of draws."""
    hold_terms.require_disjoint(
        (request.consumers, request.hold, request.from_holds) for request in placing_call.requests
    )
    named_consumers = [
        consumer for request in placing_call.requests for consumer in request.consumers
    ]
    distinct_consumers: set[str] = set()
    for consumer in named_consumers:
        if consumer in distinct_consumers:
            raise bad_request(f"The consumer {consumer} is named twice.")
        distinct_consumers.add(consumer)
    for number, rule in enumerate(placing_call.rules):
        shared_consumers = sorted(distinct_consumers.intersection(rule.others))
        if shared_consumers:
            raise bad_request(
                f"rules[{number}]: 'with' names {shared_consumers[0]}, which is a consumer of the call."
            )


def _require_one_place(placing_call: PlacingCall) -> None:
    affine_rules = [number for number, rule in enumerate(placing_call.rules) if rule.same_domain]
    if len(affine_rules) > 1:
        raise bad_request(f"rules[{affine_rules[1]}]: 'same_domain' may be in one rule only.")
    if affine_rules and placing_call.partial:
        raise bad_request(
            f"rules[{affine_rules[0]}]: 'same_domain' cannot be used with 'partial'."
        )
