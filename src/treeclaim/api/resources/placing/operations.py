# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/candidates, …/placements and …/capacity (contract page 98, sections 3 to 5)."""

import time
from itertools import chain

from oslo_config import cfg

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call, Reply, operation
from treeclaim.api.protocol.request.validation import MOST_VALUES_OF_SOME
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.allocations import hold_terms, kept_requests
from treeclaim.api.resources.candidates.operations import arrival_of, require_may_draw
from treeclaim.api.resources.candidates.queries import Queries
from treeclaim.api.resources.placing import bodies
from treeclaim.api.resources.placing.placements import PlacementCall
from treeclaim.api.resources.planning.assumptions import answer_under, read_assumptions
from treeclaim.forest.placing.capacity import CapacityLimits
from treeclaim.model.claim import HOLD_TYPE
from treeclaim.model.extension.placing import Placing, PlacingRequest, Rule
from treeclaim.replica.questions import alternatives_question, capacity_question, key_of

_SHARE_OF_TIME = 0.8
"""Share of the deadline of searches in which numbers are counted: the rest is for writing the answer."""


@operation(
    "POST /treeclaim/candidates",
    policy="placement:allocation_candidates:list",
    answers=(bodies.FOUND,),
    only_reads=True,
)
def find_alternatives(call: Call, body: bodies.AlternativesBody) -> Reply:
    """List the candidates of the first of some queries that has any."""
    texts = body.alternatives
    arrival = arrival_of(call)
    queries = Queries(call, arrival, [*texts, *body.placed_queries])
    requests = {
        f"alternatives[{number}]": queries.at(f"alternatives[{number}]", query)
        for number, query in enumerate(texts)
    }
    require_may_draw(call, *requests.values())
    assumptions = read_assumptions(call, body, queries)
    parts = (*texts, *queries.mix_texts)
    key = None if assumptions else key_of("alternatives", call.version, *parts)
    question = alternatives_question(requests, call.services.search, key)
    pieces = answer_under(call, question, assumptions, arrival)
    return Reply(body=pieces, modified_at=now())


@operation(
    "POST /treeclaim/placements",
    policy="treeclaim:placements:create",
    answers=(bodies.PLACED, bodies.NOTHING_WRITTEN),
    most_values=MOST_VALUES_OF_SOME,
    negotiates=True,
)
def place_consumers(call: Call, body: bodies.PlacementsBody) -> Reply:
    """Find places for consumers, and claim them in one transaction."""
    arrival = arrival_of(call)
    texts = chain.from_iterable(request.alternatives for request in body.requests)
    queries = Queries(call, arrival, chain(texts, body.placed_queries))
    placing = read_placing(call, body, queries)
    assumptions = read_assumptions(call, body, queries)
    if assumptions and not body.dry_run:
        raise bad_request("'given' needs 'dry_run'.")
    placer = PlacementCall(call, placing, arrival, is_dry=body.dry_run, assumptions=assumptions)
    return placer.place()


@operation(
    "POST /treeclaim/capacity",
    policy="placement:allocation_candidates:list",
    answers=(bodies.CAPACITY,),
    only_reads=True,
)
def count_fitting(call: Call, body: bodies.CapacityBody) -> Reply:
    """Count how many consumers of some requests fit."""
    arrival = arrival_of(call)
    queries = Queries(call, arrival, [*body.requests.values(), *body.placed_queries])
    seconds = arrival.seconds
    fitting = CapacityLimits(
        domains=body.domains,
        limit=body.limit,
        end=None if seconds is None else time.monotonic() + _SHARE_OF_TIME * seconds,
    )
    requests = {
        name: queries.at(f"requests.{name}", query) for name, query in body.requests.items()
    }
    require_may_draw(call, *requests.values())
    assumptions = read_assumptions(call, body, queries)
    pieces = answer_under(call, capacity_question(requests, fitting), assumptions, arrival)
    return Reply(body=pieces)


def read_placing(call: Call, body: bodies.PlacementsBody, queries: Queries) -> Placing:
    """Read a call that places consumers; how many there are of everything is checked first.

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
    placing = Placing(requests, rules, partial=body.partial, explain=body.explain)
    _require_apart(placing)
    _require_one_place(placing)
    return placing


def _require_few(body: bodies.PlacementsBody, options: cfg.ConfigOpts.GroupAttr) -> None:
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
    call: Call, queries: Queries, place: str, request: bodies.PlacementRequest
) -> PlacingRequest:
    hold = hold_terms.hold_of(call, request.hold)
    consumer_type = hold_terms.type_of(request.consumer_type, hold)
    if consumer_type == HOLD_TYPE and hold is None:
        raise bad_request(f"{place}: only a hold has the type {HOLD_TYPE}.")
    return PlacingRequest(
        alternatives=tuple(
            queries.without_holds(f"{place}.alternatives[{number}]", query)
            for number, query in enumerate(request.alternatives)
        ),
        consumers=request.consumers,
        project_id=request.project_id,
        user_id=request.user_id,
        consumer_type=consumer_type,
        from_holds=hold_terms.sources_of(call, request.from_holds),
        hold=hold,
        texts=kept_requests.kept_texts(call, request.alternatives),
    )


def _read_rule(place: str, rule: bodies.PlacementRule, count: int) -> Rule:
    requests = frozenset(range(count)) if rule.requests is None else rule.requests
    if any(request >= count for request in requests):
        raise bad_request(f"{place}: 'requests' names a request that is not in the call.")
    if rule.same_domain and rule.soft:
        raise bad_request(f"{place}: 'same_domain' cannot be soft.")
    return Rule(
        domains=rule.domains or None,
        max_per_domain=rule.max_per_domain,
        max_skew=rule.max_skew,
        same_domain=bool(rule.same_domain),
        others=tuple(dict.fromkeys(rule.others)),
        requests=requests,
        soft=rule.soft,
    )


def _require_apart(placing: Placing) -> None:
    """Check that each consumer is named once, and that none is in `with` or drawn from."""
    hold_terms.require_apart(
        (request.consumers, request.hold, request.from_holds) for request in placing.requests
    )
    named = [consumer for request in placing.requests for consumer in request.consumers]
    seen: set[str] = set()
    for consumer in named:
        if consumer in seen:
            raise bad_request(f"The consumer {consumer} is named twice.")
        seen.add(consumer)
    for number, rule in enumerate(placing.rules):
        both = sorted(seen.intersection(rule.others))
        if both:
            raise bad_request(
                f"rules[{number}]: 'with' names {both[0]}, which is a consumer of the call."
            )


def _require_one_place(placing: Placing) -> None:
    affine = [number for number, rule in enumerate(placing.rules) if rule.same_domain]
    if len(affine) > 1:
        raise bad_request(f"rules[{affine[1]}]: 'same_domain' may be in one rule only.")
    if affine and placing.partial:
        raise bad_request(f"rules[{affine[0]}]: 'same_domain' cannot be used with 'partial'.")
