# SPDX-License-Identifier: Apache-2.0
"""Requests that are stored with consumers: validation, responses, and matching (contract page 100)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.resources.candidates.operations import start_search
from treeclaim.api.resources.candidates.queries import QueryParser, parse_request, require_names
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.model.claim import LONGEST_REQUEST, ConsumerClaim, Omission
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.request import CandidateRequest
from treeclaim.store.reading.holders import ConsumerDetails, load_requests


def select_storable_request(alternatives: Sequence[str]) -> tuple[str, ...] | None:
    """Return the queries to store with consumers; None if they are too long."""
    is_short = len(orjson.dumps(list(alternatives))) <= LONGEST_REQUEST
    return tuple(alternatives) if is_short else None


def require_valid_requests(call: Call, claims: Sequence[ConsumerClaim]) -> None:
    """Raise a 400 for an invalid request of a claim; see `require_valid`."""
    request_by_uuid = {
        claim.consumer_uuid: claim.request
        for claim in claims
        if claim.request is not None and not isinstance(claim.request, Omission)
    }
    places = {
        uuid: "request" if len(claims) == 1 else f"{uuid}.request" for uuid in request_by_uuid
    }
    require_valid(call, request_by_uuid, places)


def require_valid(
    call: Call, requests: Mapping[str, Sequence[str]], places: Mapping[str, str]
) -> None:
    """Raise a 400 for an invalid request, unless it equals the stored request of the consumer.

    `requests` has the queries of each consumer, and `places` their place in the body.
    """
    if not requests:
        return
    stored_requests = call.services.store.read(load_requests, sorted(requests))
    query_by_place: dict[str, str] = {}
    for uuid, alternatives in requests.items():
        if stored_requests.get(uuid) == list(alternatives):
            continue
        if select_storable_request(alternatives) is None:
            raise bad_request(f"{places[uuid]}: longer than {LONGEST_REQUEST} bytes.")
        for number, query in enumerate(alternatives):
            query_by_place[f"{places[uuid]}[{number}]"] = query
    queries = QueryParser(call, start_search(call), query_by_place.values())
    parsed_requests = {
        place: queries.parse_without_holds(place, query) for place, query in query_by_place.items()
    }
    require_names(call, parsed_requests)


def render_request(
    call: Call, details: ConsumerDetails, uuid: str, amounts: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Return the members `request` and `request_valid` of a consumer; `amounts` are its allocations by provider and class."""
    request = details.requests.get(uuid)
    if request is None:
        return {"request": None, "request_valid": None}
    drawn_amounts = details.holds[uuid].drawn if uuid in details.holds else {}
    held_units: Counter[str] = Counter()
    for part in (*amounts.values(), *drawn_amounts.values()):
        held_units.update(part)
    return {
        "request": request,
        "request_valid": find_alternative(call, request, +held_units) is not None,
    }


def find_tolerated_keys(
    call: Call, request: Sequence[str], held_units: Mapping[str, int]
) -> frozenset[str]:
    """Return the keys of conditions that a consumer's stored request tolerates; see `find_alternative`."""
    alternative = find_alternative(call, request, held_units)
    return frozenset() if alternative is None else alternative.tolerated


def find_alternative(
    call: Call, request: Sequence[str], held_units: Mapping[str, int]
) -> CandidateRequest | None:
    """Return the first valid alternative of a stored request with the allocated units by class, which has no zeros."""
    with call.services.replica.borrow_forest() as forest:
        for query in request:
            try:
                alternative = parse_request(
                    query, call.version, call.services.options.max_request_groups
                )
                require_known_names(forest, alternative)
            except TreeclaimError:
                continue
            units_by_class: Counter[str] = Counter()
            for group in alternative.groups:
                units_by_class.update(group.resources)
            if +units_by_class == held_units:
                return alternative
    return None
