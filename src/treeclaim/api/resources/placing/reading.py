# SPDX-License-Identifier: Apache-2.0
"""Bodies of contract page 98 to calls; everything is checked before anything is done.

Every function raises ApiError, a 400 that says what is wrong, and where.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from treeclaim.api.protocol.errors import BAD_VALUE, DEADLINE, UNDEFINED, ApiError, bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.operations.services import Limits
from treeclaim.api.resources.candidates.handlers import request_of
from treeclaim.model.errors import (
    PreferredTraitsNotFoundError,
    QueryError,
    ResourceClassNotFoundError,
    SearchGivenUpError,
)
from treeclaim.model.extension.placing import Placing, PlacingRequest, Rule
from treeclaim.model.names import normalised_uuid
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import Asked

_TREES = "tree"


_LONGEST_QUERY = 256 * 1024
"""Characters of a query in a body: four times the longest address."""

_MOST_GROUPS = 65_536
"""Request groups of all different queries of a call together: those of 128 queries that have the most by
default. In the form in which the search wants them they take a hundred megabytes."""


class Queries:
    """Reads the queries of one call, each text once, and within the time that a search has."""

    def __init__(self, call: Call, asked: Asked, texts: Iterable[str]) -> None:
        """Look how many groups there are altogether, before any query is read.

        Args:
            call: The call.
            asked: When it came, and how long it may take.
            texts: All queries.

        Raises:
            ApiError: 400.
        """
        _require_few_groups(sum(f"&{text}".count("&resources") for text in set(texts)))
        self._version = call.version
        self._most_groups = call.services.limits.request_groups
        self._asked = asked
        self._known: dict[str, CandidateRequest] = {}
        self._groups = 0

    def at(self, where: str, query: str) -> CandidateRequest:
        """Read a query; an error in it begins with where it stands.

        Raises:
            ApiError: 400.
            SearchGivenUpError: if the time of the call is over.
            ClientGoneError: if its client has hung up.
        """
        self._asked.check()
        known = self._known.get(query)
        if known is not None:
            return known
        if len(query) > _LONGEST_QUERY:
            raise bad_request(f"{where}: a query is longer than {_LONGEST_QUERY} characters.")
        try:
            request = request_of(query, self._version, self._most_groups)
        except ApiError as error:
            raise ApiError(error.status, f"{where}: {error.detail}", error.code) from error
        # Names may be written in ways that are not seen without reading.
        self._groups += len(request.groups)
        _require_few_groups(self._groups)
        self._known[query] = request
        return request

    def without_holds(self, where: str, query: str) -> CandidateRequest:
        """Read a query of a call that names holds beside its queries, if any.

        Raises:
            ApiError: 400.
            SearchGivenUpError, ClientGoneError: as `at` does.
        """
        request = self.at(where, query)
        if request.from_holds:
            raise bad_request(
                f"{where}: Invalid query string parameters: 'from_holds' is a member of the "
                "request, beside 'alternatives'.",
                BAD_VALUE,
            )
        return request


def _require_few_groups(count: int) -> None:
    if count > _MOST_GROUPS:
        raise bad_request(f"The queries of the call have more than {_MOST_GROUPS} request groups.")


def queries_of_placing(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield all queries of a call that places consumers."""
    for request in body["requests"]:
        yield from request["alternatives"]


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


def placing_of(call: Call, body: Mapping[str, Any], queries: Queries) -> Placing:
    """Read a call that places consumers; how many there are of everything is judged first."""
    rules = body.get("rules", [])
    _require_few(body["requests"], rules, call.services.limits)
    requests = tuple(
        _request(queries, number, given) for number, given in enumerate(body["requests"])
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


def _request(queries: Queries, number: int, given: Mapping[str, Any]) -> PlacingRequest:
    return PlacingRequest(
        alternatives=tuple(
            queries.without_holds(f"requests[{number}].alternatives[{at}]", query)
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


def _require_apart(placing: Placing) -> None:
    """Check that each consumer is named once, and that none is in `with`."""
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
