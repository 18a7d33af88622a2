# SPDX-License-Identifier: Apache-2.0
"""Exploration leaves out schedules, and nothing that comes of them (decision 0010)."""

import pytest

from tests.databases import EACH_SERVER
from tests.store.schedules.cases import Case
from tests.store.schedules.contents import renamed, text_of_rows
from tests.store.schedules.defects import DEFECTS
from tests.store.schedules.exploration import Exploration
from tests.store.schedules.footprints import (
    BEGIN_WRITING,
    EVERYTHING,
    NOTHING,
    Transaction,
    dependent,
)
from tests.store.schedules.frontier import Frontier, Watch
from tests.store.schedules.orders import Histories, Order
from tests.store.schedules.worlds import WORLDS


def outcomes(place, case, *, reduced):
    """The number of schedules begun, with all outcomes and the wrong ones.

    Which of two clients that do the same was answered what makes no difference.
    """
    exploration = Exploration(place, case, reduced=reduced)
    found, wrong = set(), set()
    for _, outcome in exploration.outcomes():
        alike = len(set(case.scripts)) == 1
        seen = tuple(sorted(outcome.results)) if alike else outcome.results, outcome.after
        found.add(seen)
        if exploration._reasons(outcome):
            wrong.add(seen)
    return exploration.begun, found, wrong


def compare(place, case):
    """Explore with and without reductions; return what is wrong."""
    begun, found, wrong = outcomes(place, case, reduced=True)
    all_begun, all_found, all_wrong = outcomes(place, case, reduced=False)
    assert found == all_found
    assert wrong == all_wrong
    assert begun < all_begun
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("place", ["sqlite", *EACH_SERVER], indirect=True)
def test_reduction_finds_all_planted_defects(place, monkeypatch):
    defects = [defect for defect in DEFECTS if place.kind in defect.databases]
    assert defects
    for defect in defects:
        with monkeypatch.context() as patch:
            defect.plant(patch, place)
            case = Case(place.kind, defect.world, defect.scripts, preemptions=2)
            assert compare(place, case), defect.name


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", *EACH_SERVER], indirect=True)
def test_reduction_keeps_outcomes_of_correct_writes(place):
    for world, *scripts in (
        ("known-stream", "claim", "prune"),
        ("followed-present", "put-old", "read-often"),
    ):
        assert not compare(place, Case(place.kind, WORLDS[world], tuple(scripts), preemptions=1))


@pytest.mark.long
@pytest.mark.parametrize("place", EACH_SERVER, indirect=True)
@pytest.mark.parametrize(
    ("world", "scripts"),
    [
        ("claims-unrecorded", ("delete", "move")),
        ("claims-present", ("put-old", "put-old")),
        ("trees", ("move-root", "delete-leaf")),
        ("parts", ("delete-provider", "apply-parts")),
        ("groups-unrecorded", ("group-exchange", "move")),
    ],
)
def test_reduction_keeps_outcomes_of_two_preemptions(place, world, scripts):
    assert not compare(place, Case(place.kind, WORLDS[world], scripts, preemptions=2))


# -- what depends on what ----------------------------------------------------------------------

READ = "SELECT consumers.id FROM consumers"
LOCK = "SELECT consumers.id FROM consumers FOR UPDATE"
WRITE = "UPDATE consumers SET generation = 2"
OTHER = "UPDATE traits SET name = 'X'"
CHILD = "INSERT INTO resource_provider_traits (trait_id) VALUES (1)"
ADVANCE = (
    "UPDATE treeclaim_streams SET position=%s, used_at=%s WHERE treeclaim_streams.id = %s "
    "AND treeclaim_streams.identity = %s"
)
FEED = "INSERT INTO treeclaim_feed (stream_id, position, kind) VALUES (%(stream_id)s, 1, 'x')"
CLOSE = "UPDATE treeclaim_streams SET closed_in=1 WHERE treeclaim_streams.id IN (%s)"


def footprint(sql, parameters=(), *, is_snapshot=False):
    """The first statement of a transaction."""
    return Transaction().statement(sql, parameters, is_snapshot=is_snapshot)


def end_of(*statements, committed=True):
    """The footprint of the end of a transaction."""
    transaction = Transaction()
    for sql, parameters in statements:
        transaction.statement(sql, parameters, is_snapshot=False)
    return transaction.end(committed=committed)


def test_query_depends_on_commits_and_not_on_writes():
    read = footprint(READ)
    assert not dependent(read, read)
    assert not dependent(read, footprint(WRITE))
    assert not dependent(read, footprint(LOCK))
    assert dependent(read, end_of((WRITE, ())))
    assert not dependent(read, end_of((WRITE, ()), committed=False))
    assert not dependent(read, end_of((LOCK, ())))
    assert not dependent(read, end_of((OTHER, ())))


def test_lock_depends_on_locks_and_releases_of_the_same_row():
    assert dependent(footprint(LOCK), footprint(WRITE))
    assert dependent(footprint(LOCK), end_of((LOCK, ()), committed=False))
    assert not dependent(footprint(WRITE), footprint(OTHER))
    assert dependent(footprint(CHILD), footprint(OTHER))
    assert dependent(footprint(BEGIN_WRITING), footprint(BEGIN_WRITING))
    assert dependent(footprint(BEGIN_WRITING), end_of((BEGIN_WRITING, ())))


def test_first_query_takes_the_whole_snapshot():
    transaction = Transaction()
    assert not transaction.statement("SET x = 1", (), is_snapshot=True).reads
    first = transaction.statement(READ, (), is_snapshot=True)
    assert dependent(first, end_of((OTHER, ())))
    assert transaction.statement(READ, (), is_snapshot=True) == NOTHING


def test_feed_rows_are_distinguished_by_stream():
    first, second = (footprint(ADVANCE, (2, "now", stream, 77)) for stream in (1, 2))
    assert not dependent(first, second)
    assert dependent(first, footprint(ADVANCE, (9, "then", 1, 78)))
    assert dependent(first, footprint(CLOSE, (1,)))
    told, again = (footprint(FEED, {"stream_id": stream}) for stream in (1, 2))
    assert not dependent(told, again)
    assert dependent(told, footprint("DELETE FROM treeclaim_feed"))
    assert dependent(footprint("SELECT 1 FROM treeclaim_feed"), end_of((FEED, {"stream_id": 1})))


@pytest.mark.parametrize("sql", ["LOCK TABLE everything", "SELECT pg_advisory_xact_lock(1)"])
def test_unknown_statement_depends_on_everything(sql):
    assert footprint(sql) == EVERYTHING


def state_of(*steps):
    """The state after steps: of a session, a statement and whether it met all."""
    order = Order(HISTORIES, 2)
    for session, sql, meets_all in steps:
        order.add(session, sql, footprint(sql), meets_all=meets_all)
    return order.state


HISTORIES = Histories()


def test_swapping_independent_steps_keeps_the_state():
    assert state_of((0, READ, False), (1, WRITE, False)) == state_of(
        (1, WRITE, False), (0, READ, False)
    )
    assert state_of((0, LOCK, False), (1, WRITE, False)) != state_of(
        (1, WRITE, False), (0, LOCK, False)
    )
    assert state_of((0, READ, True), (1, WRITE, False)) != state_of(
        (1, WRITE, False), (0, READ, True)
    )


def test_transitive_dependencies_count():
    between = (0, LOCK, False), (1, WRITE, False), (1, OTHER, False)
    order = Order(HISTORIES, 2)
    for session, sql, _ in between:
        order.add(session, sql, footprint(sql))
    expected = order.state_after(0, CHILD, footprint(CHILD))
    order.add(0, CHILD, footprint(CHILD))
    assert order.state == expected == state_of(*between, (0, CHILD, False))
    assert order.state != state_of((0, LOCK, False), (0, CHILD, False), *between[1:])


def test_footprint_is_empty_after_the_transaction_ends():
    transaction = Transaction()
    transaction.statement(WRITE, (), is_snapshot=False)
    assert transaction.end(committed=True).shows
    assert transaction.end(committed=True) == NOTHING


# -- what tells states ----------------------------------------------------------------------------


def told(*rows, known=frozenset({"10000"})):
    """Return the parts of rows that stay when their ids are renamed."""
    text = text_of_rows(rows, known)
    return text.marked, renamed(text.ids)


def test_texts_that_differ_only_in_ids_are_equal():
    assert told("consumers (1003,mine,1)", "allocations (2001,1003)") == told(
        "consumers (1009,mine,1)", "allocations (2007,1009)"
    )


@pytest.mark.parametrize(
    "other",
    [
        ("consumers (1003,mine,2)", "allocations (2001,1003)"),
        ("consumers (1003,mine,1)", "allocations (2001,1004)"),
        ("consumers (10000,mine,1)", "allocations (2001,10000)"),
        ("consumers (1003,mine,1)",),
    ],
)
def test_texts_that_differ_beyond_ids_are_unequal(other):
    assert told("consumers (1003,mine,1)", "allocations (2001,1003)") != told(*other)


@pytest.mark.parametrize("place", EACH_SERVER, indirect=True)
def test_equal_answers_and_contents_give_equal_states(place, monkeypatch):
    case = Case(place.kind, WORLDS["claims-absent"], ("put-null", "put-other"), preemptions=2)
    exploration = Exploration(place, case)
    states = []
    for choices in ([0, 0, 1], [0, 1, 0], [0, 1, 0, 1]):
        frontier = Frontier(place.sessions[:2], case.preemptions)
        watch = Watch(frontier, len(choices), None, exploration._observations(frontier))
        watch._observations._histories = HISTORIES
        monkeypatch.setattr(frontier, "enter", lambda nodes, _spent: states.append(nodes[-1][0]))
        exploration._run(choices, watch)
    first, second, third = states
    assert first == second
    assert first != third
