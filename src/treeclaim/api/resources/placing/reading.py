# SPDX-License-Identifier: Apache-2.0
"""Bodies of contract page 98 to calls; everything is checked before anything is done.

Every function raises ApiError, a 400 that says what is wrong, and where.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.operations.services import Limits
from treeclaim.api.resources.allocations import keeping
from treeclaim.api.resources.candidates.queries import Queries
from treeclaim.model.extension.holds import HOLD_TYPE
from treeclaim.model.extension.placing import Placing, PlacingRequest, Rule
from treeclaim.model.microversions import ExtensionFeature
from treeclaim.model.names import normalised_uuid

_TREES = "tree"


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
    if consumer_type == HOLD_TYPE and hold is None and call.version.brings(ExtensionFeature.HOLDS):
        raise bad_request(f"requests[{number}]: only a hold has the type {HOLD_TYPE}.")
    return PlacingRequest(
        alternatives=tuple(
            queries.without_holds(f"requests[{number}].alternatives[{at}]", query)
            for at, query in enumerate(alternatives)
        ),
        consumers=_uuids(given["consumers"]),
        project_id=given["project_id"],
        user_id=given["user_id"],
        consumer_type=consumer_type,
        from_holds=keeping.sources_of(call, given.get("from_holds", ())),
        hold=hold,
        texts=keeping.kept_texts(call, alternatives),
    )


def _uuids(given: Sequence[str]) -> tuple[str, ...]:
    """Return uuids that were checked, as `PUT /allocations` normalises them."""
    return tuple(normalised_uuid(uuid) or uuid for uuid in given)


def _rule(number: int, given: Mapping[str, Any], count: int) -> Rule:
    where = f"rules[{number}]"
    requests = given.get("requests", range(count))
    if any(request >= count for request in requests):
        raise bad_request(f"{where}: 'requests' names one that is not there.")
    same_domain = given.get("same_domain", False)
    if same_domain and given.get("soft", False):
        raise bad_request(f"{where}: 'same_domain' cannot be soft.")
    domains = given["domains"]
    return Rule(
        domains=None if domains == _TREES else tuple(dict.fromkeys(domains)),
        max_per_domain=given.get("max_per_domain"),
        max_skew=given.get("max_skew"),
        same_domain=same_domain,
        others=tuple(dict.fromkeys(_uuids(given.get("with", [])))),
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
        raise bad_request(f"rules[{affine[1]}]: 'same_domain' may stand in one rule only.")
    if affine and placing.partial:
        raise bad_request(f"rules[{affine[0]}]: 'same_domain' cannot be used with 'partial'.")
