# SPDX-License-Identifier: Apache-2.0
"""Searching and claiming in rounds, until no other writer was there first (page 98, section 4)."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors import CONSUMER_EXISTS, UNPLACED, ApiError
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.resources.planning.assumptions import answer_under
from treeclaim.forest.placing.explanation import Outcome
from treeclaim.forest.planning.entries import rows_of_trees
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import ConcurrentChangeError, HoldRefusedError
from treeclaim.model.extension.placing import (
    Holder,
    Placement,
    Placing,
    PlacingRequest,
    claim_of,
)
from treeclaim.model.extension.planning import NO_ASSUMPTIONS, AssumptionSet
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import Arrival
from treeclaim.replica.questions import placing_question
from treeclaim.store.operations.allocations.placements import PlacementRefusedError
from treeclaim.store.operations.allocations.requests import PlacedMeanwhileError
from treeclaim.store.reading.consumers import StoredHolder, find_holders
from treeclaim.store.reading.holds import find_drawable_holds

_NEW_GENERATION = 1
"""Generation of a consumer that was just written."""


def placed_by(
    call: Call,
    placing: Placing,
    arrival: Arrival,
    *,
    is_dry: bool,
    given: AssumptionSet = NO_ASSUMPTIONS,
) -> Reply:
    """Place the consumers of a call.

    Args:
        call: The call.
        placing: What it asks for.
        arrival: When it came, and how long it may take.
        is_dry: Whether nothing is to be written.
        given: What is assumed, if nothing is written.

    Raises:
        ApiError: 409 if not all can be placed, or some consumer holds something else.
        SearchGivenUpError: if it takes longer than a search may.
        ConcurrentChangeError: if others were first again and again.
    """
    together = None if is_dry or not placing.is_single else _with_others(call, placing)
    if together is not None:
        return together
    fixed: Sequence[Placement] = ()
    gone = _gone(call, given)
    may_be_holds = any(request.hold is not None for request in placing.requests)
    for _ in range(call.services.limits.claim_attempts):
        holders = _holders(call, placing, arrival, gone, may_be_holds=may_be_holds)
        _require_sources(call, placing, holders)
        outcome = _find_places(call, placing, holders, fixed, arrival, given=given)
        if outcome.unplaced and call.services.store.end_holds():
            continue
        if outcome.unplaced and not placing.partial:
            raise _unplaced_error(outcome)
        new = [
            placement for placement in outcome.placed.values() if placement.consumer not in holders
        ]
        if is_dry or not new:
            return Reply(body=_document(placing, outcome, holders, is_dry=is_dry))
        try:
            call.services.store.place(_claims(placing, new))
        except PlacementRefusedError as error:
            fixed = _before(placing, new, error.consumer)
        except PlacedMeanwhileError:
            # A hold from which everything is drawn holds nothing, but exists.
            fixed, may_be_holds = (), True
        else:
            body = _document(placing, outcome, holders, is_dry=False)
            return Reply(HTTPStatus.CREATED, body=body)
    raise ConcurrentChangeError


def _with_others(call: Call, placing: Placing) -> Reply | None:
    """Place the single consumer of a call together with those of others that wait; None if not."""
    placement = call.services.batches.place(placing.requests[0])
    if placement is None:
        return None
    outcome = Outcome({placement.consumer: placement}, (), None)
    return Reply(HTTPStatus.CREATED, body=_document(placing, outcome, {}, is_dry=False))


def _find_places(
    call: Call,
    placing: Placing,
    holders: Mapping[str, Holder],
    fixed: Sequence[Placement],
    arrival: Arrival,
    *,
    given: AssumptionSet,
) -> Outcome:
    fixed = [placement for placement in fixed if placement.consumer not in holders]
    question = placing_question(placing, holders, fixed, shows_held=True)
    return Outcome.read(b"".join(answer_under(call, question, given, arrival)))


def _before(placing: Placing, new: Sequence[Placement], refused: str) -> Sequence[Placement]:
    """Return the placements that stay when one is refused: those of the consumers before it."""
    if any(rule.same_domain for rule in placing.rules):
        return ()
    names = [placement.consumer for placement in new]
    return new[: names.index(refused)]


# -- who holds something already ----------------------------------------------------------------


def _require_sources(call: Call, placing: Placing, holders: Container[str]) -> None:
    """Check that who is to be placed may draw from the holds of its request (page 100, section 2).

    Raises:
        HoldRefusedError: for the first hold that does not exist, or does not let its project draw.
    """
    drawing = [
        request
        for request in placing.requests
        if request.from_holds and any(consumer not in holders for consumer in request.consumers)
    ]
    if not drawing:
        return
    named = sorted({hold for request in drawing for hold in request.from_holds})
    projects = call.services.store.read(find_drawable_holds, named)
    for request in drawing:
        for hold in request.from_holds:
            if hold not in projects:
                raise HoldRefusedError(hold, "unknown")
            if request.project_id not in projects[hold]:
                raise HoldRefusedError(hold, "project")


def _gone(call: Call, assumptions: AssumptionSet) -> AbstractSet[str]:
    """Return the uuids of consumers, and of providers, that the assumptions remove."""
    if not assumptions.without:
        return frozenset(assumptions.release)
    with call.services.replica.current() as forest:
        rows = rows_of_trees(forest, assumptions.without)
        return {*assumptions.release, *map(forest.uuid_of, rows)}


def _left_of(
    held: Mapping[str, StoredHolder], gone: AbstractSet[str]
) -> Mapping[str, StoredHolder]:
    """Return those who hold something that is not gone."""
    if not gone:
        return held
    remaining_holders = {
        consumer: replace(
            holder,
            allocations={at: units for at, units in holder.allocations.items() if at not in gone},
        )
        for consumer, holder in held.items()
        if consumer not in gone
    }
    return {
        consumer: holder for consumer, holder in remaining_holders.items() if holder.allocations
    }


def _holders(
    call: Call, placing: Placing, arrival: Arrival, gone: AbstractSet[str], *, may_be_holds: bool
) -> dict[str, Holder]:
    """Return which consumers hold something already, with their alternative, or only counted.

    Raises:
        ApiError: 409 if a consumer of the call holds what it was not asked for.
        SearchGivenUpError: if the time of the call is over.
    """
    request_by_consumer = {
        consumer: request for request in placing.requests for consumer in request.consumers
    }
    rule_members = {consumer for rule in placing.rules for consumer in rule.others}
    named = sorted(request_by_consumer.keys() | rule_members)
    stored = call.services.store.read(find_holders, named, may_be_holds=may_be_holds)
    held = _left_of(stored, gone)
    holders = {
        consumer: Holder(-1, held[consumer].allocations, held[consumer].generation)
        for consumer in rule_members & held.keys()
    }
    strange = []
    known_sums = _KnownSums(arrival)
    for consumer, request in request_by_consumer.items():
        if consumer in held:
            alternative = _alternative_of(held[consumer], request, known_sums)
            if alternative is None:
                strange.append(consumer)
            else:
                state = held[consumer]
                holders[consumer] = Holder(alternative, state.allocations, state.generation)
    if strange:
        raise ApiError(
            HTTPStatus.CONFLICT,
            "Some consumers already hold something else, or for another owner.",
            CONSUMER_EXISTS,
            members={"consumers": strange},
        )
    return holders


def _alternative_of(
    held: StoredHolder, request: PlacingRequest, known_sums: "_KnownSums"
) -> int | None:
    """Return the first alternative that what a consumer holds adds up to, None if there is none."""
    owner = (request.project_id, request.user_id, request.consumer_type)
    if (held.project_id, held.user_id, held.consumer_type) != owner:
        return None
    return known_sums.alternatives(request).get(_sum_of(held.allocations.values()))


_Sum = frozenset[tuple[str, int]]
"""Amounts by resource class; those that are 0 do not count."""


def _sum_of(parts: Iterable[Mapping[str, int]]) -> _Sum:
    amounts: Counter[str] = Counter()
    for part in parts:
        amounts.update(part)
    return frozenset(item for item in amounts.items() if item[1])


class _KnownSums:
    """The sums of the alternatives of requests, each computed once.

    There may be a thousand consumers, and sixteen alternatives with hundreds of groups.
    """

    def __init__(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._sums: dict[CandidateRequest, _Sum] = {}
        self._alternatives: dict[tuple[CandidateRequest, ...], dict[_Sum, int]] = {}

    def alternatives(self, request: PlacingRequest) -> Mapping[_Sum, int]:
        """Return the numbers of the first alternatives of a request by what they add up to."""
        self._arrival.check()
        numbers = self._alternatives.get(request.alternatives)
        if numbers is None:
            numbers = self._alternatives[request.alternatives] = {}
            for number, alternative in enumerate(request.alternatives):
                numbers.setdefault(self._sum(alternative), number)
        return numbers

    def _sum(self, alternative: CandidateRequest) -> _Sum:
        self._arrival.check()
        if alternative not in self._sums:
            self._sums[alternative] = _sum_of(group.resources for group in alternative.groups)
        return self._sums[alternative]


# -- claims and documents ------------------------------------------------------------------------


def _claims(placing: Placing, new: Sequence[Placement]) -> list[ConsumerClaim]:
    request_by_consumer = {
        consumer: request for request in placing.requests for consumer in request.consumers
    }
    return [claim_of(request_by_consumer[placement.consumer], placement) for placement in new]


def _document(
    placing: Placing, outcome: Outcome, holders: Mapping[str, Holder], *, is_dry: bool
) -> dict[str, Any]:
    new_generation = None if is_dry else _NEW_GENERATION
    document: dict[str, Any] = {
        "placements": [
            _placement_document(
                outcome.placed[consumer],
                holders[consumer].generation if consumer in holders else new_generation,
            )
            for request in placing.requests
            for consumer in request.consumers
            if consumer in outcome.placed
        ],
        "unplaced": list(outcome.unplaced),
    }
    if outcome.explanation is not None:
        document["explanation"] = outcome.explanation
    if outcome.given is not None:
        document["given"] = outcome.given
    return document


def _placement_document(placement: Placement, generation: int | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "consumer": placement.consumer,
        "alternative": placement.alternative,
        "root_providers": [{"uuid": uuid, "name": name} for uuid, name in placement.roots],
        "allocations": {
            uuid: {"resources": amounts} for uuid, amounts in placement.allocations.items()
        },
        "mappings": placement.mappings,
        "dropped": list(placement.dropped),
        "consumer_generation": generation,
    }
    if placement.is_approximate:
        document["approximate"] = True
    return document


def _unplaced_error(outcome: Outcome) -> ApiError:
    members: dict[str, Any] = {"unplaced": list(outcome.unplaced)}
    if outcome.explanation is not None:
        members["explanation"] = outcome.explanation
    return ApiError(
        HTTPStatus.CONFLICT,
        f"There is no place for consumer {outcome.unplaced[0]} beside those before it.",
        UNPLACED,
        members=members,
    )
