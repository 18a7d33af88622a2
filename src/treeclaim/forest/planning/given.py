# SPDX-License-Identifier: Apache-2.0
"""Assumptions: a Forest and consumers as they would be (contract page 101, section 1)."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.domains.filters import armed_heads, require_known_names
from treeclaim.forest.placing.room import QueryPool
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.consumers import Consumers, PlannedConsumer
from treeclaim.forest.planning.entries import NOWHERE, apply_entries, rows_of_trees
from treeclaim.forest.table.columns import NO_ROW
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, add_held, amounts_by_id
from treeclaim.model.changes import Changes, UsageChange
from treeclaim.model.claim import Amounts
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.planning import AssumptionSet
from treeclaim.model.parts import CONDITIONS
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.query.errors import QueryError

_MADE_UP = uuid.UUID("6c1f7a0e-0b3c-5f0e-9d6e-7f6d3c0a51b4")
"""Namespace of the uuids of consumers that are placed only for a call."""


@dataclass(slots=True)
class AssumedWorld:
    """The world under assumptions.

    Attributes:
        forest: The Forest, changed in place.
        held: Held amounts.
        consumers: Consumers with allocations.
        placed: Number of consumers placed for each query of `place`.
    """

    forest: Forest
    held: HeldAmounts
    consumers: Consumers
    placed: list[int]


def apply_assumptions(
    forest: Forest, consumers: Consumers, given: AssumptionSet, held: HeldAmounts, budget: Budget
) -> AssumedWorld:
    """Apply assumptions to a Forest.

    Args:
        forest: Changed in place, so it must be the caller's own, as in a child.
        consumers: The present consumers, at least those that are released.
        given: The assumptions.
        held: Held amounts.
        budget: The budget of the call.

    Raises:
        BatchRefusedError: if the entries of providers are faulty.
        QueryError: for the first query that names what does not exist.
    """
    world = AssumedWorld(forest, held, dict(consumers), [])
    if given.release:
        _release(world, given.release, budget)
    if given.without:
        _remove_trees(world, given.without, budget)
    if given.providers:
        apply_entries(forest, given.providers, budget)
    for number, (request, _) in enumerate(given.place):
        try:
            require_known_names(forest, request)
        except (ResourceClassNotFoundError, TraitsNotFoundError) as error:
            raise QueryError(f"given.place.requests[{number}].query", error) from error
    if given.place:
        _place(world, given, budget)
    forest.held = world.held
    return world


def _release(world: AssumedWorld, uuids: Sequence[str], budget: Budget) -> None:
    """Remove all allocations of consumers; drawn amounts return to holds."""
    # A hold whose amounts are all drawn holds nothing, and can be released too.
    gone = set(uuids)
    used = Counter[tuple[str, str]]()
    for name in sorted(gone & world.consumers.keys()):
        budget.check()
        consumer = world.consumers.pop(name)
        used.subtract(_amounts_by_cell(consumer.allocations))
        for hold in consumer.drawn.keys() - gone:
            used.update(_amounts_by_cell(consumer.drawn[hold]))
        world.held = held_after(world.forest, world.held, consumer, gone)
        _return_drawn(world, consumer, gone)
    for consumer in list(world.consumers.values()):
        if not gone.isdisjoint(consumer.drawn):
            # A hold that is gone takes nothing back.
            remaining_draws = {
                hold: amounts for hold, amounts in consumer.drawn.items() if hold not in gone
            }
            world.consumers[consumer.uuid] = replace(consumer, drawn=remaining_draws)
    _use(world.forest, used, budget)


def _amounts_by_cell(amounts: Amounts) -> dict[tuple[str, str], int]:
    return {
        (uuid, name): amount
        for uuid, units_by_class in amounts.items()
        for name, amount in units_by_class.items()
    }


def _return_drawn(world: AssumedWorld, consumer: PlannedConsumer, gone: set[str]) -> None:
    """Add what a released consumer had drawn to the allocations of the holds."""
    for name, drawn in consumer.drawn.items():
        if name not in gone:
            # A hold whose amounts were all drawn held nothing before.
            hold = world.consumers.get(name)
            if hold is None:
                hold = PlannedConsumer(name, "", None, 0, {}, is_hold=True)
            world.consumers[name] = replace(
                hold, allocations=_sum_amounts(hold.allocations, drawn, 1)
            )


def held_after(
    forest: Forest, held: HeldAmounts, consumer: PlannedConsumer, gone: set[str]
) -> HeldAmounts:
    """Return what holds have once a consumer is released: a hold itself, or one that has drawn."""
    changes: list[tuple[str, Amounts, int]] = [
        (hold, drawn, 1) for hold, drawn in consumer.drawn.items() if hold not in gone
    ]
    if consumer.is_hold:
        changes.append((consumer.uuid, consumer.allocations, -1))
    by_hold, everywhere = dict(held.by_hold), held.everywhere
    for hold, amounts, sign in changes:
        if hold in by_hold:
            by_hold[hold] = _sum_amounts(by_hold[hold], amounts, sign)
        if everywhere is not None:
            everywhere = add_held(everywhere, amounts_by_id(forest, amounts), sign)
    return HeldAmounts(by_hold, everywhere)


def _sum_amounts(before: Amounts, amounts: Amounts, sign: int) -> dict[str, dict[str, int]]:
    sums = dict(before)
    for provider, units_by_class in amounts.items():
        sums[provider] = units = dict(sums.get(provider, {}))
        for name, amount in units_by_class.items():
            units[name] = units.get(name, 0) + sign * amount
    return {uuid: dict(units_by_class) for uuid, units_by_class in sums.items()}


def _use(forest: Forest, amounts: Mapping[tuple[str, str], int], budget: Budget) -> None:
    """Add to the used amounts of a Forest, by provider uuid and class; negative amounts are subtracted."""
    used: dict[int, dict[int, int]] = defaultdict(dict)
    for (provider, name), amount in amounts.items():
        budget.check()
        row = forest.row_of(provider)
        if row is not None and amount:
            class_id = forest.catalogue.resource_classes[name].id
            used[int(forest.id.values[row])][class_id] = amount
    usage = {
        number: UsageChange(units_by_class, 0, 0, 0.0) for number, units_by_class in used.items()
    }
    forest.apply(Changes(NOWHERE, False, (), (), None, usage))


def _remove_trees(world: AssumedWorld, uuids: Sequence[str], budget: Budget) -> None:
    forest = world.forest
    gone = rows_of_trees(forest, uuids)
    removed = {forest.uuid_of(row) for row in gone}
    numbers = [int(forest.id.values[row]) for row in gone]
    forest.apply(Changes(NOWHERE, False, (), numbers, None))
    for consumer in list(world.consumers.values()):
        budget.check()
        if not removed.isdisjoint(consumer.allocations):
            remaining_allocations = _without_providers(consumer.allocations, removed)
            if remaining_allocations:
                drawn = {
                    hold: _without_providers(units_by_provider, removed)
                    for hold, units_by_provider in consumer.drawn.items()
                }
                world.consumers[consumer.uuid] = replace(
                    consumer, allocations=remaining_allocations, drawn=drawn
                )
            else:
                del world.consumers[consumer.uuid]
    by_hold = {
        hold: _without_providers(units_by_provider, removed)
        for hold, units_by_provider in world.held.by_hold.items()
    }
    # Held amounts of removed providers are ignored.
    world.held = HeldAmounts(by_hold, world.held.everywhere)


def _without_providers(amounts: Amounts, removed: set[str]) -> dict[str, Mapping[str, int]]:
    return {
        uuid: units_by_class for uuid, units_by_class in amounts.items() if uuid not in removed
    }


def _place(world: AssumedWorld, assumptions: AssumptionSet, budget: Budget) -> None:
    """Place as many consumers of each query as there is room for, one after the other."""
    forest = world.forest
    pool = QueryPool(Scratch(forest), budget)
    everywhere = np.ones(len(forest.order.roots), dtype=np.bool_)
    placed_allocations: list[Allocation] = []
    for number, (request, amount) in enumerate(assumptions.place):
        count = 0
        while count < amount:
            budget.check()
            place = pool.first([request], everywhere)
            if place is None:
                # Nor will there be room for the next one.
                break
            _, candidate = place
            pool.scratch.place(candidate.allocations)
            placed_allocations += candidate.allocations
            name = str(uuid.uuid5(_MADE_UP, f"{number}/{count}"))
            allocations = candidate.body(forest).allocations
            world.consumers[name] = PlannedConsumer(
                name, "", None, 0, allocations, (request,), (0,), is_made_up=True
            )
            count += 1
        world.placed.append(count)
    amounts = Counter[tuple[str, str]]()
    for row, name, amount in placed_allocations:
        amounts[forest.uuid_of(row), name] += amount
    _begin_conditions(forest, {row for row, _, _ in placed_allocations})
    _use(forest, amounts, budget)


def _begin_conditions(forest: Forest, used: Iterable[int]) -> None:
    """Begin the `on_use` conditions of some rows and of the providers above them."""
    if armed_heads(forest) is None:
        return
    records: dict[int, ProviderRecord] = {}
    for lowest in used:
        row = lowest
        while row != NO_ROW:
            conditions = forest.conditions(row)
            if any(not each.began for each in conditions):
                begun = tuple(replace(each, began=True) for each in conditions)
                record = forest.record(row)
                links = {**record.links, CONDITIONS.name: begun}
                records[row] = replace(record, links=links)
            row = int(forest.parent.values[row])
    forest.apply(Changes(NOWHERE, False, list(records.values()), (), None))
