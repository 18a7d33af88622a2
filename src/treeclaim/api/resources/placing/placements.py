# SPDX-License-Identifier: Apache-2.0
"""Searches and claims, repeated while other writers interfere (page 98, section 4)."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors import CONSUMER_EXISTS, UNPLACED, ApiError
from treeclaim.api.protocol.operations import Answer, Call, Reply
from treeclaim.api.resources.planning.assumptions import answer_question
from treeclaim.forest.placing.explanation import PlacingOutcome
from treeclaim.forest.planning.entries import find_tree_rows
from treeclaim.model.errors import ConcurrentChangeError
from treeclaim.model.extension.errors import HoldRefusedError
from treeclaim.model.extension.placing import (
    PlacedConsumer,
    Placement,
    PlacingCall,
    PlacingRequest,
    make_claim,
)
from treeclaim.model.extension.planning import AssumptionSet
from treeclaim.replica import Arrival
from treeclaim.replica.questions import placing_question
from treeclaim.store.operations.allocations.requests import (
    STALE_PLACE_ERRORS,
    PlacedMeanwhileError,
)
from treeclaim.store.reading.holders import StoredHolder, find_holders
from treeclaim.store.reading.holds import find_drawable_holds

_NEW_GENERATION = 1
"""Generation of a new consumer."""


class Placer:
    """Places the consumers of a call, or only finds their places if the call `is_dry`; assumptions need a dry call."""

    def __init__(
        self,
        call: Call,
        placing_call: PlacingCall,
        arrival: Arrival,
        *,
        is_dry: bool,
        assumptions: AssumptionSet,
    ) -> None:
        self._call = call
        self._store = call.services.store
        self._placing_call = placing_call
        self._arrival = arrival
        self._is_dry = is_dry
        self._assumptions = assumptions
        self._requests = {
            consumer: request
            for request in placing_call.requests
            for consumer in request.consumers
        }

    def place(self) -> Answer:
        """Search and claim; repeat both while other writers interfere.

        Raises:
            ApiError: 409 if a consumer cannot be placed, or has other allocations already.
            SearchGivenUpError: if the deadline of searches has passed.
            ConcurrentChangeError: if other writers interfered in all attempts.
        """
        placing_call = self._placing_call
        if placing_call.is_single and not self._is_dry:
            placement = self._call.services.batches.place(placing_call.requests[0])
            if placement is not None:
                outcome = PlacingOutcome({placement.consumer: placement}, (), None)
                return self._reply(outcome, {}, HTTPStatus.CREATED)
        removed_uuids = self._find_removed()
        may_be_holds = any(request.hold is not None for request in placing_call.requests)
        for _ in range(self._call.services.claim_attempts):
            holders = self._find_holders(removed_uuids, may_be_holds=may_be_holds)
            self._require_sources(holders)
            outcome = self._find_places(holders)
            if outcome.unplaced and not placing_call.partial:
                raise _make_unplaced_error(outcome)
            new_placements = [
                placement
                for placement in outcome.placed.values()
                if placement.consumer not in holders
            ]
            if self._is_dry or not new_placements:
                return self._reply(outcome, holders, HTTPStatus.OK)
            try:
                self._store.place(
                    [
                        make_claim(self._requests[placement.consumer], placement)
                        for placement in new_placements
                    ]
                )
            except STALE_PLACE_ERRORS:
                continue
            except PlacedMeanwhileError:
                # An exhausted hold exists without allocations.
                may_be_holds = True
            else:
                return self._reply(outcome, holders, HTTPStatus.CREATED)
        raise ConcurrentChangeError

    def _find_removed(self) -> AbstractSet[str]:
        """Return the UUIDs of consumers and providers that the assumptions remove."""
        assumptions = self._assumptions
        if not assumptions.without:
            return frozenset(assumptions.release)
        with self._call.services.replica.borrow_forest() as forest:
            rows = find_tree_rows(forest, assumptions.without)
            return {*assumptions.release, *map(forest.uuid_of, rows)}

    def _find_holders(
        self, removed_uuids: AbstractSet[str], *, may_be_holds: bool
    ) -> dict[str, PlacedConsumer]:
        """Return the consumers with allocations, with their alternative; -1 for consumers in `with` of a rule.

        Raises:
            ApiError: 409 if a consumer of the call has other allocations than its request, or another owner.
            SearchGivenUpError: if the deadline has passed.
        """
        rule_members = {consumer for rule in self._placing_call.rules for consumer in rule.others}
        named_consumers = sorted(self._requests.keys() | rule_members)
        stored_holders = self._store.read(find_holders, named_consumers, may_be_holds=may_be_holds)
        holder_by_consumer = _without_removed(stored_holders, removed_uuids)
        holders = {
            consumer: PlacedConsumer(
                -1,
                holder_by_consumer[consumer].allocations,
                holder_by_consumer[consumer].generation,
            )
            for consumer in rule_members & holder_by_consumer.keys()
        }
        conflicting_consumers = []
        for request in self._placing_call.requests:
            holding_consumers = [
                consumer for consumer in request.consumers if consumer in holder_by_consumer
            ]
            alternatives = self._alternatives_by_sum(request) if holding_consumers else {}
            owner = (request.project_id, request.user_id, request.consumer_type)
            for consumer in holding_consumers:
                self._arrival.check()
                state = holder_by_consumer[consumer]
                alternative = alternatives.get(_add_up(state.allocations.values()))
                if alternative is None or owner != (
                    state.project_id,
                    state.user_id,
                    state.consumer_type,
                ):
                    conflicting_consumers.append(consumer)
                else:
                    holders[consumer] = PlacedConsumer(
                        alternative, state.allocations, state.generation
                    )
        if conflicting_consumers:
            raise ApiError(
                HTTPStatus.CONFLICT,
                "Some consumers already hold something else, or for another owner.",
                CONSUMER_EXISTS,
                members={"consumers": conflicting_consumers},
            )
        return holders

    def _alternatives_by_sum(self, request: PlacingRequest) -> "Mapping[_Sum, int]":
        """Return the number of the first alternative with each sum of amounts."""
        number_by_sum: dict[_Sum, int] = {}
        for number, alternative in enumerate(request.alternatives):
            self._arrival.check()
            number_by_sum.setdefault(
                _add_up(group.resources for group in alternative.groups), number
            )
        return number_by_sum

    def _require_sources(self, holders: Container[str]) -> None:
        """Raise HoldRefusedError if a new consumer names an unknown hold, or one of another project (page 100, section 2)."""
        drawing_requests = [
            request
            for request in self._placing_call.requests
            if request.from_holds
            and any(consumer not in holders for consumer in request.consumers)
        ]
        if not drawing_requests:
            return
        named_holds = sorted({hold for request in drawing_requests for hold in request.from_holds})
        projects = self._store.read(find_drawable_holds, named_holds)
        for request in drawing_requests:
            for hold in request.from_holds:
                if hold not in projects:
                    raise HoldRefusedError(hold, "unknown")
                if request.project_id not in projects[hold]:
                    raise HoldRefusedError(hold, "project")

    def _find_places(self, holders: Mapping[str, PlacedConsumer]) -> PlacingOutcome:
        question = placing_question(self._placing_call, holders)
        pieces = answer_question(self._call, question, self._assumptions, self._arrival)
        return PlacingOutcome.read(b"".join(pieces))

    def _reply(
        self, outcome: PlacingOutcome, holders: Mapping[str, PlacedConsumer], status: HTTPStatus
    ) -> Reply:
        new_generation = None if self._is_dry else _NEW_GENERATION
        document: dict[str, Any] = {
            "placements": [
                _make_placement_document(
                    outcome.placed[consumer],
                    holders[consumer].generation if consumer in holders else new_generation,
                )
                for consumer in self._requests
                if consumer in outcome.placed
            ],
            "unplaced": list(outcome.unplaced),
        }
        if outcome.explanation is not None:
            document["explanation"] = outcome.explanation
        if outcome.given is not None:
            document["given"] = outcome.given
        return Reply(status, body=document)


def _without_removed(
    holder_by_consumer: Mapping[str, StoredHolder], removed_uuids: AbstractSet[str]
) -> Mapping[str, StoredHolder]:
    """Return the holders, without consumers and allocations that the assumptions remove."""
    if not removed_uuids:
        return holder_by_consumer
    remaining_holders = {
        consumer: replace(
            holder,
            allocations={
                at: units for at, units in holder.allocations.items() if at not in removed_uuids
            },
        )
        for consumer, holder in holder_by_consumer.items()
        if consumer not in removed_uuids
    }
    return {
        consumer: holder for consumer, holder in remaining_holders.items() if holder.allocations
    }


_Sum = frozenset[tuple[str, int]]
"""Amounts by resource class, without zeros."""


def _add_up(parts: Iterable[Mapping[str, int]]) -> _Sum:
    amounts: Counter[str] = Counter()
    for part in parts:
        amounts.update(part)
    return frozenset(item for item in amounts.items() if item[1])


def _make_placement_document(placement: Placement, generation: int | None) -> dict[str, Any]:
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


def _make_unplaced_error(outcome: PlacingOutcome) -> ApiError:
    members: dict[str, Any] = {"unplaced": list(outcome.unplaced)}
    if outcome.explanation is not None:
        members["explanation"] = outcome.explanation
    return ApiError(
        HTTPStatus.CONFLICT,
        f"There is no place for consumer {outcome.unplaced[0]} beside those before it.",
        UNPLACED,
        members=members,
    )
