# SPDX-License-Identifier: Apache-2.0
"""A batch comes to the same state, and the same answers, in every order of its entries."""

from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.databases import EACH_DATABASE
from tests.service import fresh_database_on
from tests.tiers import examples
from treeclaim.model.claim import Omission
from treeclaim.model.extension.batch import BatchEntry, BatchRefusedError
from treeclaim.model.provider import Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.providers import providers
from treeclaim.store.operations.providers.entries import write_entries

PRESENT_COUNT, NEW_COUNT, NOWHERE = 4, 2, "99999999-0000-4000-8000-000000000000"
UUIDS = [f"11111111-0000-4000-8000-{number:012}" for number in range(PRESENT_COUNT + NEW_COUNT)]
NAMES = [f"name {number}" for number in range(PRESENT_COUNT + NEW_COUNT)]
STOCK = Inventory(total=4)
EXAMPLES = {"sqlite": 60, "postgresql": 20, "mariadb": 20}


@dataclass(frozen=True)
class World:
    """Parents of the providers that are there, by number, and entries."""

    parents: tuple
    entries: tuple
    create_names: bool


class _UndoError(Exception):
    def __init__(self, state):
        super().__init__("undone")
        self.state = state


@st.composite
def worlds(draw):
    """A small forest, and entries that most often can be applied, but seldom one after the other."""
    parents = tuple(
        draw(st.sampled_from([None, *range(number)])) if number else None
        for number in range(PRESENT_COUNT)
    )
    every = list(range(PRESENT_COUNT + NEW_COUNT))
    numbers = draw(st.lists(st.sampled_from(every), min_size=2, max_size=4, unique=True))
    ranks = draw(st.permutations(every))
    names = draw(st.permutations([NAMES[number] for number in numbers]))
    create_names = draw(st.integers(0, 3)) > 0
    entries = [
        draw(entry(number, name, ranks, create_names))
        for number, name in zip(numbers, names, strict=True)
    ]
    if draw(st.integers(0, 9)) == 0:
        entries.append(draw(st.sampled_from(entries)))
    return World(parents, tuple(entries), create_names)


@st.composite
def entry(draw, number, name, ranks, create_names):
    """An entry for one provider: its parent has a lower rank, but for some."""
    is_new = number >= PRESENT_COUNT
    by_name = not is_new and draw(st.integers(0, 7)) == 0
    lower = [UUIDS[rank] for rank in ranks[: ranks.index(number)]]
    kept_parents = [] if is_new else [Omission.OMITTED]
    custom = create_names or draw(st.integers(0, 9)) == 0
    values: dict[str, list[Any]] = {
        "inventories": [{}, {"VCPU": STOCK}, *([{"CUSTOM_Q": STOCK}] * custom)],
        "traits": [set(), {"HW_CPU_X86_AVX"}, *([{"CUSTOM_T"}] * custom)],
        "aggregates": [set(), {NOWHERE}],
    }
    drawn_values = {
        name: draw(st.sampled_from([None, *alternatives])) for name, alternatives in values.items()
    }
    return BatchEntry(
        uuid=None if by_name else UUIDS[number],
        name=NAMES[number] if by_name else seldom(draw, None, name),
        parent=seldom(draw, NOWHERE, draw(st.sampled_from([None, *kept_parents, *lower, *lower]))),
        generation=seldom(draw, 0, None),
        values={name: value for name, value in drawn_values.items() if value is not None},
    )


def seldom(draw, rare, usual):
    """Another value, once in a while."""
    return rare if draw(st.integers(0, 14)) == 14 else usual


@pytest.fixture(
    scope="module",
    params=EACH_DATABASE,
)
def kind_and_store(request, tmp_path_factory):
    """A database without providers; each example reverts its writes."""
    with fresh_database_on(request.param, tmp_path_factory.mktemp("batches")) as url:
        store = Store(DatabaseSettings(url))
        yield request.param, store
        store.close()


@pytest.mark.slow
def test_order_of_batch_entries_does_not_matter(kind_and_store):
    kind, store = kind_and_store

    @settings(
        max_examples=examples(EXAMPLES[kind]),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(worlds())
    def holds(world):
        outcomes = [outcome(store, world, order) for order in permutations(world.entries)]
        assert all(each_outcome == outcomes[0] for each_outcome in outcomes)
        is_taken, _ = outcomes[0]
        assert is_taken == is_possible(world)

    holds()


def outcome(store, world, order):
    """Return the result of an accepted batch, or the faults of each entry."""

    def operation(transaction):
        for number, parent in enumerate(world.parents):
            above = None if parent is None else UUIDS[parent]
            providers.create(
                transaction, uuid=UUIDS[number], name=NAMES[number], parent_uuid=above
            )
        applied = write_entries(
            transaction, order, lambda _: True, create_names=world.create_names
        )
        answers = dict(zip(map(uuid_of, order), applied, strict=True))
        assert [answer.uuid for answer in applied] == [uuid_of(name) for name in order]
        raise _UndoError((answers, state_in(transaction)))

    try:
        store.write(operation)
    except _UndoError as undone:
        return True, undone.state
    except BatchRefusedError as refused:
        problems = refused.problems
    if max(Counter(map(uuid_of, world.entries)).values()) > 1:
        # The first of several names of a provider decides which error is reported.
        return False, None
    return False, Counter(
        (uuid_of(order[problem.index]), str(problem.error)) for problem in problems
    )


def uuid_of(given_entry):
    """The provider that an entry is about."""
    return given_entry.uuid or UUIDS[NAMES.index(given_entry.name)]


def state_in(transaction):
    """All providers with their parts, and those named in the feed."""
    transaction.flush()
    rows = transaction.rows(
        "SELECT p.uuid, p.name, p.generation, above.uuid, root.uuid, p.id FROM resource_providers p "
        "LEFT JOIN resource_providers above ON above.id = p.parent_provider_id "
        "LEFT JOIN resource_providers root ON root.id = p.root_provider_id"
    )
    uuids = {row[5]: row[0] for row in rows}
    stock = transaction.rows("SELECT resource_provider_id, total FROM inventories ORDER BY 1")
    members = transaction.rows(
        "SELECT resource_provider_id, name FROM resource_provider_traits JOIN traits ON id = trait_id"
    )
    assert not {None} & {row[1] for row in rows}
    assert rows_agree(rows)
    return (
        sorted(tuple(row[:5]) for row in rows),
        sorted((uuids[provider_id], total) for provider_id, total in stock),
        sorted((uuids[provider_id], name) for provider_id, name in members),
        sorted(
            (uuids[provider_id], touched.parts, touched.tree)
            for provider_id, touched in transaction.touched_providers.items()
        ),
    )


def rows_agree(rows):
    """Return whether the root of each provider is its topmost ancestor."""
    parents = {row[0]: row[3] for row in rows}

    def top(name):
        for _ in parents:
            name = parents[name] or name
        return name

    return all(top(row[0]) == row[4] for row in rows)


def is_possible(world):
    """Return whether a batch may be accepted, by the state that it would leave."""
    about = [uuid_of(entry) for entry in world.entries]
    if len(set(about)) < len(about):
        return False
    names = dict(zip(UUIDS[:PRESENT_COUNT], NAMES, strict=False))
    parents = {
        UUIDS[number]: None if parent is None else UUIDS[parent]
        for number, parent in enumerate(world.parents)
    }
    for entry in world.entries:
        name = uuid_of(entry)
        is_new = name not in UUIDS[:PRESENT_COUNT]
        if (is_new and entry.name is None) or (is_new and entry.generation is not None):
            return False
        names[name] = entry.name or names[name]
        parents.setdefault(name, None)
        if not isinstance(entry.parent, Omission):
            parents[name] = entry.parent
        used_names = {*entry.values.get("traits", ()), *entry.values.get("inventories", ())}
        if not world.create_names and any(value.startswith("CUSTOM_") for value in used_names):
            return False
    if len(set(names.values())) < len(names) or not {*parents.values()} <= {None, *parents}:
        return False
    return all(ends(parents, name) for name in parents)


def ends(parents, name):
    """Return whether the ancestors of a provider come to an end."""
    for _ in range(len(parents) + 1):
        if name is None:
            return True
        name = parents[name]
    return False
