# SPDX-License-Identifier: Apache-2.0
"""Consumers with their allocations and valid requests, for plans (contract page 101)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache

import orjson

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.order.totals import get_totals
from treeclaim.forest.table.forest import Forest
from treeclaim.model.claim import Amounts
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.planning import (
    AllocationColumns,
    ConsumerSnapshotPart,
    HoldSnapshot,
    OwnerColumns,
    RequestColumns,
)
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class PlannedConsumer:
    """A consumer with allocations.

    Attributes:
        project: The project of the consumer's owner; empty for a consumer without a record.
        type: The name of the consumer's type; None if it never had a type.
        generation: 0 for a consumer without a record.
        requests: The readable alternatives of the consumer's valid request; empty without a valid request.
        numbers: The position of each alternative in the kept request.
        drawn_amounts: Amounts that return to holds when the consumer is released, by hold.
        is_assumed: Whether the consumer exists only for the call.
    """

    uuid: str
    project: str
    type: str | None
    generation: int
    allocations: Amounts
    requests: tuple[CandidateRequest, ...] = ()
    numbers: tuple[int, ...] = ()
    drawn_amounts: Mapping[str, Amounts] = field(default_factory=dict)
    is_hold: bool = False
    is_assumed: bool = False

    def sum_amounts(self) -> Counter[str]:
        """Return the allocated amounts by class."""
        total_amounts: Counter[str] = Counter()
        for amounts in self.allocations.values():
            total_amounts.update(amounts)
        return +total_amounts

    @property
    def tolerated(self) -> frozenset[str]:
        """Return the tolerated keys of the first alternative that demands exactly the allocated amounts."""
        total_amounts = self.sum_amounts()
        for request in self.requests:
            if +sum_demand(request) == total_amounts:
                return request.tolerated
        return frozenset()


Consumers = dict[str, PlannedConsumer]
"""Consumers by UUID."""


def read_consumers(
    forest: Forest, parts: Iterable[ConsumerSnapshotPart], budget: Budget
) -> tuple[Consumers, Mapping[str, str]]:
    """Read consumers from parts of one snapshot, which must be that of the Forest.

    Returns:
        Consumers without requests, and their kept requests: JSON lists of queries by consumer. Allocations
        of unknown providers or classes are skipped.
    """
    request_texts: dict[str, str] = {}
    owners: dict[str, tuple[str, str | None, int]] = {}
    allocations_by_consumer: dict[str, dict[str, dict[str, int]]] = {}
    holds = HoldSnapshot(frozenset(), {})
    for part in parts:
        budget.check()
        match part:
            case AllocationColumns():
                _add_allocations(forest, part, allocations_by_consumer, budget)
            case OwnerColumns():
                owner_rows = zip(part.project, part.type, part.generation, strict=True)
                owners.update(zip(part.uuid, owner_rows, strict=True))
            case RequestColumns():
                request_texts.update(zip(part.consumer, part.request, strict=True))
            case HoldSnapshot():
                holds = part
    consumers = {
        uuid: PlannedConsumer(
            uuid,
            *owners.get(uuid, ("", None, 0)),
            allocations,
            drawn_amounts=holds.drawn.get(uuid, {}),
            is_hold=uuid in holds.holds,
        )
        for uuid, allocations in allocations_by_consumer.items()
    }
    return consumers, request_texts


def _add_allocations(
    forest: Forest,
    part: AllocationColumns,
    allocations_by_consumer: dict[str, dict[str, dict[str, int]]],
    budget: Budget,
) -> None:
    uuids: dict[int, str | None] = {}
    names = {number: entry.name for number, entry in forest.catalogue.class_by_id.items()}
    for consumer, provider_id, class_id, used_units in zip(
        part.consumer, part.provider_id, part.class_id, part.used, strict=True
    ):
        if provider_id not in uuids:
            budget.check()
            row = forest.row_of_id(provider_id)
            uuids[provider_id] = None if row is None else forest.uuid_of(row)
        uuid, name = uuids[provider_id], names.get(class_id)
        if uuid is not None and name is not None:
            amounts = allocations_by_consumer.setdefault(consumer, {}).setdefault(uuid, {})
            amounts[name] = amounts.get(name, 0) + used_units


def sum_demand(request: CandidateRequest) -> Counter[str]:
    """Return the requested amounts by class."""
    amounts: Counter[str] = Counter()
    for group in request.groups:
        amounts.update(group.resources)
    return amounts


def attach_requests(
    consumers: Consumers,
    request_texts: Mapping[str, str],
    queries_by_consumer: Mapping[str, Iterable[str]],
    forest: Forest,
    parse: Callable[[str], CandidateRequest],
) -> Consumers:
    """Return consumers with their valid requests (contract page 100, section 4).

    `request_texts` are kept requests: JSON lists of queries by consumer. Queries of the call, in
    `queries_by_consumer`, replace them. `parse` raises a TreeclaimError for a query that is not readable any more.
    """
    read_list = cache(orjson.loads)

    @cache
    def read(text: str) -> tuple[CandidateRequest | None, Counter[str]]:
        """Return the request of a query and its demand; None if it is not readable any more."""
        try:
            request = replace(parse(text), limit=None, from_holds=())
            require_known_names(forest, request)
        except TreeclaimError:
            return None, Counter()
        return request, +sum_demand(request)

    @cache
    def read_all(texts: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[CandidateRequest, ...]]:
        """Return the numbers of the readable queries, and their requests."""
        requests = {number: read(text)[0] for number, text in enumerate(texts)}
        readable = {number: request for number, request in requests.items() if request}
        return tuple(readable), tuple(readable.values())

    def with_request(consumer: PlannedConsumer) -> PlannedConsumer:
        text = request_texts.get(consumer.uuid)
        queries = queries_by_consumer.get(consumer.uuid, () if text is None else read_list(text))
        total_amounts = consumer.sum_amounts()
        if not any(sums == total_amounts and request for request, sums in map(read, queries)):
            return consumer
        numbers, requests = read_all(tuple(queries))
        return replace(consumer, requests=requests, numbers=numbers)

    return {uuid: with_request(consumer) for uuid, consumer in consumers.items()}


def make_need_key(forest: Forest) -> Callable[[PlannedConsumer], tuple[Fraction, str]]:
    """Return the sort key for placing consumers: by descending need, then by uuid (contract page 101, section 4).

    The need of a consumer is its greatest share of a class in the capacity of the whole cloud.
    """

    @cache
    def capacity(name: str) -> int:
        return int(get_totals(forest, name).tree_capacity.sum())

    @cache
    def share(sums: frozenset[tuple[str, int]]) -> Fraction:
        # A class without any capacity has the greatest share.
        shares = [
            Fraction(amount, capacity(name) or 1) + (0 if capacity(name) else 10**12)
            for name, amount in sums
        ]
        return -max(shares, default=Fraction(0))

    return lambda consumer: (share(frozenset(consumer.sum_amounts().items())), consumer.uuid)
