# SPDX-License-Identifier: Apache-2.0
"""Applies the assumptions of a call to a Forest and its consumers (contract page 101, section 1)."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.domains.filters import armed_heads, require_known_names
from treeclaim.forest.placing.candidate import make_allocations
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.planning.consumers import Consumers, PlannedConsumer
from treeclaim.forest.planning.entries import NOWHERE, apply_entries, find_tree_rows
from treeclaim.forest.table.columns import NO_ROW
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, add_held, amounts_by_id
from treeclaim.model.changes import Changes, UsageChange
from treeclaim.model.claim import Amounts
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.planning import AssumptionSet
from treeclaim.model.parts import CONDITIONS
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.query.value_parsers import QueryError

_ASSUMED = uuid.UUID("6c1f7a0e-0b3c-5f0e-9d6e-7f6d3c0a51b4")
"""Namespace of the uuids of consumers that exist only for a call."""


def apply_assumptions(
    forest: Forest, consumers: Consumers, assumptions: AssumptionSet, budget: Budget
) -> list[int]:
    """Apply assumptions to a Forest with its held amounts, and to its consumers.

    Both are changed in place, so they must not be shared with other calls. `consumers` must include at least the
    consumers to release.

    Returns:
        The number of consumers placed for each query of `place`.

    Raises:
        BatchRefusedError: if the entries of providers are faulty.
        QueryError: for the first query with an unknown name.
    """
    if assumptions.release:
        _release(forest, consumers, assumptions.release, budget)
    if assumptions.without:
        _remove_trees(forest, consumers, assumptions.without, budget)
    if assumptions.providers:
        apply_entries(forest, assumptions.providers, budget)
    for number, (request, _) in enumerate(assumptions.place):
        try:
            require_known_names(forest, request)
        except (ResourceClassNotFoundError, TraitsNotFoundError) as error:
            raise QueryError(f"given.place.requests[{number}].query", error) from error
    return _place(forest, consumers, assumptions, budget) if assumptions.place else []


def _release(forest: Forest, consumers: Consumers, uuids: Sequence[str], budget: Budget) -> None:
    """Remove all allocations of consumers; drawn amounts return to holds."""
    # `uuids` may include a hold without allocations, whose amounts are all drawn.
    released = set(uuids)
    signed_allocations: list[Allocation] = []
    for name in sorted(released & consumers.keys()):
        budget.check()
        consumer = consumers.pop(name)
        for row, class_name, amount in make_allocations(forest, consumer.allocations):
            signed_allocations.append((row, class_name, -amount))
        forest.held_amounts = release_held(forest, forest.held_amounts, consumer, released)
        for hold, drawn_amounts in consumer.drawn_amounts.items():
            if hold not in released:
                signed_allocations += make_allocations(forest, drawn_amounts)
                # A hold whose amounts were all drawn is not among the consumers yet.
                holder = consumers.get(hold) or PlannedConsumer(
                    hold, "", None, 0, {}, is_hold=True
                )
                allocations = _sum_amounts(holder.allocations, drawn_amounts, 1)
                consumers[hold] = replace(holder, allocations=allocations)
    for name, consumer in consumers.items():
        # No amounts return to a released hold.
        kept_draws = {
            hold: each for hold, each in consumer.drawn_amounts.items() if hold not in released
        }
        if len(kept_draws) < len(consumer.drawn_amounts):
            consumers[name] = replace(consumer, drawn_amounts=kept_draws)
    forest.apply(Changes(NOWHERE, usage=_sum_usage(forest, signed_allocations, budget)))


def release_held(
    forest: Forest, held_amounts: HeldAmounts, consumer: PlannedConsumer, released: set[str]
) -> HeldAmounts:
    """Return the held amounts after the release of a consumer; drawn amounts do not return to released holds."""
    changes: list[tuple[str, Amounts, int]] = [
        (hold, drawn_amounts, 1)
        for hold, drawn_amounts in consumer.drawn_amounts.items()
        if hold not in released
    ]
    if consumer.is_hold:
        changes.append((consumer.uuid, consumer.allocations, -1))
    by_hold, everywhere = dict(held_amounts.by_hold), held_amounts.everywhere
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


def _sum_usage(
    forest: Forest, allocations: Iterable[Allocation], budget: Budget
) -> Mapping[int, UsageChange]:
    """Return changes by id of the provider."""
    units_by_provider: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for row, name, amount in allocations:
        budget.check()
        class_id = forest.catalogue.resource_classes[name].id
        units_by_provider[int(forest.id.values[row])][class_id] += amount
    return {
        number: UsageChange(amounts, 0, 0, 0.0) for number, amounts in units_by_provider.items()
    }


def _remove_trees(
    forest: Forest, consumers: Consumers, uuids: Sequence[str], budget: Budget
) -> None:
    rows = find_tree_rows(forest, uuids)
    removed = {forest.uuid_of(row) for row in rows}
    ids = [int(forest.id.values[row]) for row in rows]
    forest.apply(Changes(NOWHERE, removed=ids))
    for name, consumer in list(consumers.items()):
        budget.check()
        if not removed.isdisjoint(consumer.allocations):
            allocations = _drop_providers(consumer.allocations, removed)
            drawn_amounts = {
                hold: _drop_providers(amounts, removed)
                for hold, amounts in consumer.drawn_amounts.items()
            }
            consumers[name] = replace(
                consumer, allocations=allocations, drawn_amounts=drawn_amounts
            )
            if not allocations:
                del consumers[name]
    by_hold = {
        hold: _drop_providers(amounts, removed)
        for hold, amounts in forest.held_amounts.by_hold.items()
    }
    # `everywhere` may keep the amounts of removed providers, because no search reads them.
    forest.held_amounts = replace(forest.held_amounts, by_hold=by_hold)


def _drop_providers(amounts: Amounts, removed: set[str]) -> dict[str, Mapping[str, int]]:
    return {
        uuid: units_by_class for uuid, units_by_class in amounts.items() if uuid not in removed
    }


def _place(
    forest: Forest, consumers: Consumers, assumptions: AssumptionSet, budget: Budget
) -> list[int]:
    """Place the consumers of each query one after the other, until there is no room."""
    placed_counts: list[int] = []
    pool = QueryPool(ScratchForest(forest), budget)
    placed_allocations: list[Allocation] = []
    for number, (request, amount) in enumerate(assumptions.place):
        count = 0
        while count < amount:
            budget.check()
            match = pool.find_first([request])
            if match is None:
                break
            _, candidate = match
            pool.scratch.place(candidate.allocations)
            placed_allocations += candidate.allocations
            name = str(uuid.uuid5(_ASSUMED, f"{number}/{count}"))
            allocations = candidate.body(forest).allocations
            consumers[name] = PlannedConsumer(
                name, "", None, 0, allocations, (request,), (0,), is_assumed=True
            )
            count += 1
        placed_counts.append(count)
    # `_begin_conditions` may move providers to other rows.
    usage = _sum_usage(forest, placed_allocations, budget)
    _begin_conditions(forest, {row for row, _, _ in placed_allocations})
    forest.apply(Changes(NOWHERE, usage=usage))
    return placed_counts


def _begin_conditions(forest: Forest, used_rows: Iterable[int]) -> None:
    """Begin the `on_use` conditions of the used rows and of the providers above them."""
    if armed_heads(forest) is None:
        return
    records: dict[int, ProviderRecord] = {}
    for lowest in used_rows:
        row = lowest
        while row != NO_ROW:
            conditions = forest.conditions(row)
            if any(not each.began for each in conditions):
                begun_conditions = tuple(replace(each, began=True) for each in conditions)
                record = forest.record(row)
                links = {**record.links, CONDITIONS.name: begun_conditions}
                records[row] = replace(record, links=links)
            row = int(forest.parent.values[row])
    forest.apply(Changes(NOWHERE, records=list(records.values())))
