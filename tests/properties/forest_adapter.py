# SPDX-License-Identifier: Apache-2.0
"""Converts the reference's values to the Forest's, and answers back; has properties hold on every path."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given

from tests.forest.building import BEGINNING
from tests.reference.candidates import SHARING, TooManyError
from tests.reference.strategies import CLASSES, TRAITS
from tests.reference.world import uuid_of
from tests.tiers import many_worlds
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes
from treeclaim.model.extension.expressions import read_expression
from treeclaim.model.provider import (
    Condition,
    ConsumptionRecord,
    Effect,
    Inventory,
    InventoryRecord,
    ProviderRecord,
)
from treeclaim.model.request import (
    BodyForm,
    CandidateRequest,
    Order,
    Preference,
    ProviderConditions,
    RequestGroup,
    SearchOptions,
    SplitPolicy,
    SubtreeList,
    Term,
    TermName,
    ValueList,
)


def forest_of(world):
    forest = Forest()
    forest.apply(loaded(world))
    return forest


def loaded(world):
    """The changes with the meaning: these are all providers, traits and classes."""
    records = records_of(world)
    traits, classes = names_of(world)
    catalogue = Catalogue.of(
        [CatalogueEntry(number, name, 0.0) for number, name in enumerate(traits)],
        [CatalogueEntry(number, name, 0.0) for number, name in enumerate(classes)],
    )
    return Changes(BEGINNING, complete=True, records=records, removed=[], catalogue=catalogue)


def names_of(world):
    """The traits and the classes that there are: those of all worlds, and those of this one."""
    traits = {name for provider in world.providers for name in provider.traits}
    classes = {name for provider in world.providers for name in provider.stock}
    known_traits = (SHARING, *TRAITS)
    return (*known_traits, *sorted(traits - set(known_traits))), (
        *CLASSES,
        *sorted(classes - set(CLASSES)),
    )


def ids_of(world):
    """Return ids by name, with gaps for later providers, which are called `new0`, `new1` and so on.

    `new0x` has the id of `new0`, which is deleted by then.
    """
    first = [provider.name for provider in world.providers if not provider.name.startswith("new")]
    later = [provider.name for provider in world.providers if provider.name.startswith("new")]
    numbers = {name: 10 * number for number, name in enumerate(first, 1)}
    return numbers | {name: 10 * int(name.strip("newx")) + 5 for name in later}


def records_of(world):
    """The providers of a world as the store would give them."""
    traits, classes = names_of(world)
    ids = ids_of(world)
    parents = {provider.name: provider.parent for provider in world.providers}

    def root(name):
        while parents[name] is not None:
            name = parents[name]
        return name

    records = [
        ProviderRecord(
            id=ids[provider.name],
            uuid=uuid_of(provider.name),
            name=provider.name,
            generation=0,
            parent_id=ids.get(provider.parent),
            root_id=ids[root(provider.name)],
            modified_at=0.0,
            inventories=tuple(
                sorted(
                    (
                        _inventory(
                            classes.index(name),
                            stock,
                            sorted(
                                ConsumptionRecord(ids[other], classes.index(consumed), amount)
                                for other, consumed, amount in provider.consumes.get(name, ())
                            ),
                        )
                        for name, stock in provider.stock.items()
                    ),
                    key=lambda inventory: inventory.class_id,
                )
            ),
            links={
                "traits": tuple(sorted(map(traits.index, provider.traits))),
                "aggregates": tuple(sorted(map(uuid_of, provider.aggregates))),
                "conditions": tuple(
                    Condition(key, Effect.NO_NEW) for key in sorted(provider.conditions)
                ),
            },
            attributes=provider.attributes,
        )
        for provider in world.providers
    ]
    return sorted(records, key=lambda record: record.id)


def _inventory(class_id, stock, consumes=()):
    inventory = Inventory(
        stock.total,
        stock.reserved,
        stock.min_unit,
        stock.max_unit,
        stock.step_size,
        stock.allocation_ratio,
    )
    return InventoryRecord(class_id, inventory, stock.used, 0.0, tuple(consumes))


def candidate_request(request, limit=None):
    """The search's form of a request."""
    return CandidateRequest(
        groups=tuple(
            RequestGroup(group.suffix, group.resources, _conditions(group))
            for group in request.groups
        ),
        root=_conditions(request.root),
        same_subtree=tuple(SubtreeList(*suffixes) for suffixes in request.same_subtree),
        isolated=request.isolated,
        values=tuple(ValueList(*value) for value in request.values),
        can_split=request.can_split,
        split_policy=SplitPolicy(request.split_policy),
        limit=limit,
        nested=request.nested,
        order=_order(request),
    )


def _order(request):
    if not request.order:
        return None
    return Order(
        tuple(
            Term(TermName(name), arguments, weight) for name, arguments, weight in request.order
        ),
        tuple(Preference(*preference) for preference in request.preferred),
    )


def _conditions(group):
    return ProviderConditions(
        required=group.required,
        forbidden=group.forbidden,
        member_of=tuple(frozenset(map(uuid_of, aggregates)) for aggregates in group.member_of),
        forbidden_aggregates=frozenset(map(uuid_of, group.not_member_of)),
        in_tree=tuple(map(uuid_of, group.in_tree)),
        in_subtree=tuple(map(uuid_of, group.in_subtree)),
        not_in_tree=tuple(map(uuid_of, group.not_in_tree)),
        where=tuple(map(read_expression, group.where)),
        tolerates=group.tolerates,
    )


def by_provider(amounts):
    """Return amounts by (provider, class) as the service has them: by uuid and class."""
    allocations = {}
    for (provider, name), amount in amounts.items():
        if amount:
            allocations.setdefault(uuid_of(provider), {})[name] = amount
    return allocations


def named_candidate(world, allocations, mappings):
    """Return amounts by provider and class, and providers by suffix, as the reference has a candidate."""
    names = {provider.uuid: provider.name for provider in world.providers}
    return (
        frozenset(
            (names[provider], name, amount)
            for provider, amounts in allocations.items()
            for name, amount in amounts.items()
        ),
        frozenset(
            (suffix, frozenset(map(names.get, providers)))
            for suffix, providers in mappings.items()
        ),
    )


class FoundCandidates:
    """An answer in the reference's terms."""

    def __init__(self, world, body):
        names = {provider.uuid: provider.name for provider in world.providers}
        document = json.loads(body)
        self.listed = [
            named_candidate(
                world,
                {uuid: part["resources"] for uuid, part in candidate["allocations"].items()},
                candidate["mappings"],
            )
            for candidate in document["allocation_requests"]
        ]
        self.candidates = set(self.listed)
        self.scores = document.get("scores")
        self.is_approximate = document.get("approximate", False)
        self.summaries = {
            names[provider]: summary
            for provider, summary in document["provider_summaries"].items()
        }


def ask(forest, request, limit=None, **options):
    """The body that answers a request, as bytes."""
    form = replace(BodyForm(), nested=request.nested)
    answer = search(forest, candidate_request(request, limit), SearchOptions(**options), form)
    return b"".join(answer.pieces())


DECIMALS = 12
"""Decimals to which scores are rounded."""

NEARLY_HALF = 1e-2
"""A score so near to the middle between two roundings is rounded as arithmetic happens to go."""


def list_unordered(world, request, most):
    """Return the candidates of a request in the usual order.

    Raises:
        TooManyError: if there are more than `most`.
    """
    candidates = FoundCandidates(
        world, ask(forest_of(world), replace(request, order=(), preferred=()))
    ).listed
    if len(candidates) > most:
        raise TooManyError
    return candidates


def rank(candidates, score):
    """Return pairs of rounded score and candidate, the greatest score first, equal ones in their order.

    Raises:
        TooManyError: if a score is too near to the middle between two roundings.
    """
    exact = list(map(score, candidates))
    if any(abs(each * 10**DECIMALS % 1 - 0.5) < NEARLY_HALF for each in exact):
        raise TooManyError
    pairs = zip((round(each, DECIMALS) for each in exact), candidates, strict=True)
    return sorted(pairs, key=lambda pair: -pair[0])


LOWERED = {
    "table.provider_table.GROUPS_COPIED_TOGETHER": 1,
    "solve.stage.FIRST_REACH": 1,
    "solve.stage.FRUITLESS_STRIDE": 1,
    "solve.stage.LARGEST_BLOCK": 3,
    "solve.candidate_cache.SMALLEST_BLOCK": 1,
    "solve.combine.SMALLEST_BLOCK": 1,
    "solve.stage.SMALLEST_BLOCK": 1,
    "solve.partial.combiner.LARGEST_FRUITLESS_BLOCK": 3,
    "solve.partial.blocks.STACK_BYTES": 100,
    "solve.partial.combiner.PATIENCE": 0,
    "feasibility.joint_feasibility.SOME_COMBINATIONS": 1,
    "feasibility.joint_feasibility.MANY_COMBINATIONS": 2,
    "solve.tree_kinds.MANY_COMBINATIONS": 2,
    "solve.combine.CANDIDATES_TOGETHER": 2,
    "answer.body.SLOTS_TOGETHER": 3,
    "answer.body.TREES_IN_A_PIECE": 1,
    "answer.templates.FEW_SLOTS": 1,
    "answer.templates.MOST_COMPARISONS": 4,
    "answer.templates.LARGEST_CODED_PATTERN": 2,
    "order.ordered_search.TOGETHER": 1,
    "order.ordered_search.KINDS_FROM": -1,
    "order.ordered_search.FIRST_BEST_TREES": 1,
    "order.ordered_search.SORTED_FIRST": 2,
    "table.compaction.FEWEST_DEAD_ROWS": 1,
    "table.register.FEWEST_CHANGED_KEYS": 1,
    "table.compaction.FEWEST_FULL_ROWS": 2,
    "table.forest.ROWS_COPIED_TOGETHER": 2,
    "table.provider_table.ROWS_COPIED_TOGETHER": 2,
    "table.forest.MOST_TREES_EDITED": 2,
    "table.order.MOST_TREES_EDITED": 2,
    "domains.followed.FEW_TREES_WRITTEN": 1,
    "placing.scratch.FEW_TREES_WRITTEN": 1,
    "table.class_inventories.MOST_WRITES_KNOWN": 2,
    "placing.queries.TOGETHER": 2,
    "placing.queries.TREES_TOGETHER": 1,
    "placing.queries.CANDIDATES_TOGETHER": 4,
}
"""Every size from which on a search takes another path, so low that small worlds take it."""


@contextmanager
def lowered(values):
    """Set thresholds, by name, as long as the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(f"treeclaim.forest.{name}", value)
        yield


every_path = pytest.mark.parametrize("sizes", [{}, LOWERED], ids=["usual", "lowered"])
"""Runs a test twice: with the usual thresholds, and with all of them lowered."""


def property_of(worlds, *strategies, **thresholds):
    """Return a decorator for a check of drawn values: a test that runs it on every path.

    Args:
        worlds: The usual number of worlds.
        strategies: Draw the arguments of the check.
        thresholds: Other thresholds for both paths, by name.
    """

    def decorate(check):
        @every_path
        def test(sizes):
            with lowered(sizes | thresholds):
                many_worlds(worlds)(given(*strategies)(check))()

        return test

    return decorate
