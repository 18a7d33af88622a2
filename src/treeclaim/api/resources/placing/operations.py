# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/candidates, …/placements and …/capacity (contract page 98, sections 3 to 5).

Everything in a body is checked before anything is done; what reads it raises ApiError, a 400 that says what
is wrong, and where.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call, Reply, Versioned, operation
from treeclaim.api.protocol.operations.call import Limits
from treeclaim.api.protocol.request.validation import (
    MOST_VALUES_IN_BULK,
    MOST_VALUES_OF_SOME,
)
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.allocations import keeping
from treeclaim.api.resources.candidates.operations import asked_by, require_may_draw
from treeclaim.api.resources.candidates.queries import Queries, refusing_queries
from treeclaim.api.resources.placing import schemas
from treeclaim.api.resources.placing.placements import placed_by
from treeclaim.api.resources.planning import given as forms
from treeclaim.api.resources.planning.given import (
    answered,
    domains_of,
    given_of,
    queries_of_given,
    uuids_of,
)
from treeclaim.forest.placing.capacity import CapacityLimits
from treeclaim.model.extension.holds import HOLD_TYPE
from treeclaim.model.extension.placing import Placing, PlacingRequest, Rule
from treeclaim.replica.questions import alternatives_question, capacity_question, key_of

_DEFAULT_PARTS = 1_000

_SHARE_OF_TIME = 0.8
"""Share of the deadline of searches in which numbers are counted: the rest is for writing the answer."""


@operation(
    "POST /treeclaim/candidates",
    policy="placement:allocation_candidates:list",
    answers=(schemas.FOUND,),
    body=Versioned(schemas.alternatives()),
    most_values=MOST_VALUES_IN_BULK,
    forms=forms.QUERIES,
    needs_opt_in=True,
    only_reads=True,
)
def find_alternatives(call: Call) -> Reply:
    """List the candidates of the first of some queries that has any."""
    document = call.json()
    texts = document["alternatives"]
    asked = asked_by(call)
    queries = Queries(call, asked, [*texts, *queries_of_given(document)])
    with refusing_queries():
        requests = {
            f"alternatives[{number}]": queries.at(f"alternatives[{number}]", query)
            for number, query in enumerate(texts)
        }
        require_may_draw(call, *requests.values())
        given = given_of(call, document, queries)
        parts = (*texts, *queries.mix_texts)
        key = None if given else key_of("alternatives", call.version, *parts)
        question = alternatives_question(requests, call.services.search, key)
        body = answered(call, question, given, asked)
    return Reply(body=body, modified_at=now(), is_ready_made=True)


@operation(
    "POST /treeclaim/placements",
    policy="treeclaim:placements:create",
    answers=(schemas.PLACED, schemas.NOTHING_WRITTEN),
    body=Versioned(schemas.placements()),
    most_values=MOST_VALUES_OF_SOME,
    forms=forms.QUERIES,
    negotiates=True,
    needs_opt_in=True,
)
def place_consumers(call: Call) -> Reply:
    """Find places for consumers, and claim them in one transaction."""
    body = call.json()
    asked = asked_by(call)
    with refusing_queries():
        queries = Queries(call, asked, chain(queries_of_placing(body), queries_of_given(body)))
        placing = placing_of(call, body, queries)
        given = given_of(call, body, queries)
        if "given" in body and not body.get("dry_run", False):
            raise bad_request("'given' needs 'dry_run'.")
        return placed_by(call, placing, asked, is_dry=body.get("dry_run", False), given=given)


@operation(
    "POST /treeclaim/capacity",
    policy="placement:allocation_candidates:list",
    answers=(schemas.CAPACITY,),
    body=Versioned(schemas.capacity()),
    most_values=MOST_VALUES_IN_BULK,
    forms=forms.QUERIES,
    needs_opt_in=True,
    only_reads=True,
)
def count_fitting(call: Call) -> Reply:
    """Count how many consumers of some requests fit."""
    body = call.json()
    domains = body.get("domains")
    asked = asked_by(call)
    queries = Queries(call, asked, [*body["requests"].values(), *queries_of_given(body)])
    seconds = asked.seconds
    fitting = CapacityLimits(
        domains=None if domains is None else () if domains == "tree" else tuple(domains),
        limit=body.get("limit", _DEFAULT_PARTS),
        end=None if seconds is None else time.monotonic() + _SHARE_OF_TIME * seconds,
    )
    with refusing_queries():
        requests = {
            name: queries.at(f"requests.{name}", query) for name, query in body["requests"].items()
        }
        require_may_draw(call, *requests.values())
        given = given_of(call, body, queries)
        answer = answered(call, capacity_question(requests, fitting), given, asked)
        return Reply(body=answer, is_ready_made=True)


def queries_of_placing(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield all queries of a call that places consumers."""
    for request in body["requests"]:
        yield from request["alternatives"]


def placing_of(call: Call, body: Mapping[str, Any], queries: Queries) -> Placing:
    """Read a call that places consumers; how many there are of everything is judged first."""
    rules = body.get("rules", [])
    _require_few(body["requests"], rules, call.services.limits)
    requests = tuple(
        _request(call, queries, number, given) for number, given in enumerate(body["requests"])
    )
    placing = Placing(
        requests=requests,
        rules=tuple(_rule(number, given, len(requests)) for number, given in enumerate(rules)),
        partial=body.get("partial", False),
        explain=body.get("explain", False),
    )
    _require_apart(placing)
    _require_one_place(placing)
    return placing


def _require_few(
    requests: Sequence[Mapping[str, Any]], rules: Sequence[object], limits: Limits
) -> None:
    consumers = sum(len(given["consumers"]) for given in requests)
    if consumers > limits.placing_consumers:
        raise bad_request(
            f"{consumers} consumers are more than {limits.placing_consumers} "
            "([treeclaim]/max_placing_consumers)."
        )
    if len(rules) > limits.placing_rules:
        raise bad_request(
            f"{len(rules)} rules are more than {limits.placing_rules} "
            "([treeclaim]/max_placing_rules)."
        )


def _request(
    call: Call, queries: Queries, number: int, given: Mapping[str, Any]
) -> PlacingRequest:
    alternatives = given["alternatives"]
    hold = keeping.hold_of(call, given.get("hold"))
    consumer_type = keeping.type_of(given, hold)
    if consumer_type == HOLD_TYPE and hold is None:
        raise bad_request(f"requests[{number}]: only a hold has the type {HOLD_TYPE}.")
    return PlacingRequest(
        alternatives=tuple(
            queries.without_holds(f"requests[{number}].alternatives[{at}]", query)
            for at, query in enumerate(alternatives)
        ),
        consumers=uuids_of(given["consumers"]),
        project_id=given["project_id"],
        user_id=given["user_id"],
        consumer_type=consumer_type,
        from_holds=keeping.sources_of(call, given.get("from_holds", ())),
        hold=hold,
        texts=keeping.kept_texts(call, alternatives),
    )


def _rule(number: int, given: Mapping[str, Any], count: int) -> Rule:
    where = f"rules[{number}]"
    requests = given.get("requests", range(count))
    if any(request >= count for request in requests):
        raise bad_request(f"{where}: 'requests' names a request that is not in the call.")
    same_domain = given.get("same_domain", False)
    if same_domain and given.get("soft", False):
        raise bad_request(f"{where}: 'same_domain' cannot be soft.")
    return Rule(
        domains=domains_of(given["domains"]),
        max_per_domain=given.get("max_per_domain"),
        max_skew=given.get("max_skew"),
        same_domain=same_domain,
        others=tuple(dict.fromkeys(uuids_of(given.get("with", [])))),
        requests=frozenset(requests),
        soft=given.get("soft", False),
    )


def _require_apart(placing: Placing) -> None:
    """Check that each consumer is named once, and that none is in `with` or drawn from."""
    keeping.require_apart(
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
