# SPDX-License-Identifier: Apache-2.0
"""Bodies of contract page 98 to calls; everything is checked before anything is done.

Every function raises ApiError, a 400 that says what is wrong, and where.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from treeclaim.api.protocol.errors import BAD_VALUE, DEADLINE, UNDEFINED, ApiError, bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.operations.services import Limits
from treeclaim.api.resources.candidates.handlers import request_of, require_few_groups
from treeclaim.model.errors import (
    PreferredTraitsNotFoundError,
    QueryError,
    ResourceClassNotFoundError,
    SearchGivenUpError,
)
from treeclaim.model.extension.placing import Placing, PlacingRequest, Rule
from treeclaim.model.names import normalised_uuid
from treeclaim.model.request import CandidateRequest

_TREES = "tree"


def query_at(call: Call, where: str, query: str) -> CandidateRequest:
    """Read a query; an error in it begins with where it stands."""
    try:
        request = request_of(query, call.version)
        require_few_groups(request, call.services.limits)
    except ApiError as error:
        raise ApiError(error.status, f"{where}: {error.detail}", error.code) from error
    return request


@contextmanager
def refusing_queries() -> Iterator[None]:
    """Answer 400 where a query names what does not exist, or the call took all its time."""
    try:
        yield
    except QueryError as error:
        is_class = issubclass(error.kind, ResourceClassNotFoundError)
        prefix = "Invalid resource class in resources parameter: " if is_class else ""
        code = BAD_VALUE if issubclass(error.kind, PreferredTraitsNotFoundError) else UNDEFINED
        raise bad_request(f"{error.where}: {prefix}{error.text}", code) from error
    except SearchGivenUpError as error:
        raise bad_request(str(error), DEADLINE) from error


def placing_of(call: Call, body: Mapping[str, Any]) -> Placing:
    """Read a call that places consumers."""
    limits = call.services.limits
    requests = tuple(
        _request(call, number, given) for number, given in enumerate(body["requests"])
    )
    rules = body.get("rules", [])
    if len(rules) > limits.placing_rules:
        raise bad_request(
            f"{len(rules)} rules are more than {limits.placing_rules} "
            "([treeclaim]/max_placing_rules)."
        )
    placing = Placing(
        requests=requests,
        rules=tuple(_rule(number, given, len(requests)) for number, given in enumerate(rules)),
        partial=body.get("partial", False),
        explain=body.get("explain", False),
    )
    _require_apart(placing, limits)
    _require_one_place(placing)
    return placing


def _request(call: Call, number: int, given: Mapping[str, Any]) -> PlacingRequest:
    return PlacingRequest(
        alternatives=tuple(
            query_at(call, f"requests[{number}].alternatives[{at}]", query)
            for at, query in enumerate(given["alternatives"])
        ),
        consumers=_uuids(given["consumers"]),
        project_id=given["project_id"],
        user_id=given["user_id"],
        consumer_type=given["consumer_type"],
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


def _require_apart(placing: Placing, limits: Limits) -> None:
    """Check that each consumer is named once, that none is in `with`, and how many there are."""
    named = [consumer for request in placing.requests for consumer in request.consumers]
    if len(named) > limits.placing_consumers:
        raise bad_request(
            f"{len(named)} consumers are more than {limits.placing_consumers} "
            "([treeclaim]/max_placing_consumers)."
        )
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
