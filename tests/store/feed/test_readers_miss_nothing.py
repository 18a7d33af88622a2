# SPDX-License-Identifier: Apache-2.0
"""After prunings, restorations and torn views, a reader that catches up equals a new reader."""

from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.databases import EACH_DATABASE, filled_database
from tests.store.feed.worlds_of_readers import (
    PROVIDERS,
    READERS,
    WRITERS,
    Reader,
    World,
    prepare,
)
from tests.tiers import examples

ACTIONS = [
    "stock",
    "describe",
    "claim",
    "claim",
    "claim",
    "move",
    "release",
    "claim_without_amounts",
    "read",
    "read",
    "change",
    "change",
    "change",
    "replace",
    "trait",
    "restart",
    "age",
    "prune_everything",
    "prune_old",
    "backup",
    "restore",
    "read_torn",
    "load_torn",
    "read_torn_as_client",
    "read_as_client",
    "reset_feed",
    "recreate",
]
OTHER_HISTORIES = {"restore", "reset_feed", "recreate"}
"""Actions after which readers may load everything."""
STORIES = st.lists(
    st.tuples(
        st.sampled_from(ACTIONS),
        st.integers(0, WRITERS - 1),
        st.integers(0, len(PROVIDERS) - 1),
    ),
    # Short stories find few failures. Hypothesis shrinks the actions of a failing story to reads.
    min_size=20,
    max_size=40,
)


@pytest.fixture(params=EACH_DATABASE)
def world(request, tmp_path):
    """A database of each kind, with writers and readers."""
    with (
        filled_database(request.param, prepare, tmp_path) as url,
        closing(World(url)) as new_world,
    ):
        yield new_world


def run(world, story):
    """Run actions of a world, each with up to two numbers; zero is the default."""
    for action in story.split(", "):
        name, writer, which = [*action.split(), "0", "0"][:3]
        getattr(world, name)(int(writer), int(which))


def check_all_readers(world):
    """Compare all readers with new readers."""
    for number in range(READERS):
        world.read(0, number)


def run_with_reader(world, story):
    """Run a story; a reader that polls after each action loads everything only in another history."""
    reader = Reader(world.onlooker)
    world.must_be_current(reader)
    for name, writer, which in story:
        getattr(world, name)(writer, which)
        assert name in OTHER_HISTORIES or not reader.catch_up(), name
        world.must_be_current(reader)
    check_all_readers(world)
    world.read_as_client(0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_random_histories_leave_no_reader_behind(kind, tmp_path):
    count = examples(40) if kind == "sqlite" else 20
    with filled_database(kind, prepare, tmp_path) as url:

        @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
        @given(story=STORIES)
        def every_story(story):
            with closing(World(url)) as world:
                run_with_reader(world, story)
                # The next story begins with the same database.
                world.restore(0, len(world.backups) - 1)

        every_story()


PRUNE = "prune_everything 2"
STORIES_BY_HAND = {
    "unread rows are pruned": "create, read, create 1 1, age, stock, prune_old 2",
    "everything is pruned": f"create, {PRUNE}, read, create 1 1, {PRUNE}, {PRUNE}",
    "a position decreases": "create, backup, stock, read, restore",
    "a restore loses the first commit of a shard": "backup, create 1, read, restore",
    "positions are reached again": (
        "create, backup, create 1 1, stock 1 1, read, restore, create 1 2, stock 1 2"
    ),
    "positions are exceeded": (
        "create, backup, create 1 1, stock 1 1, read, restore, create 1 2, stock 1 2, stock 1"
    ),
    "a restore brings pruned rows back": f"create, backup, {PRUNE}, read, restore, stock",
    "positions are exceeded and pruned": (
        f"create, backup, stock, read, restore, create 0 1, stock 0 1, {PRUNE}"
    ),
    "a database is recreated": "create, create 1 1, read, recreate, create 0 2, create 1 3",
    "a history of prunings is lost": (
        "create, create 1 1, age, stock, backup, prune_old 2, read, restore, restart 1, create 1 2, "
        f"{PRUNE}, {PRUNE}, {PRUNE}"
    ),
    "rows are changed by hand": "create, read, reset_feed, stock",
} | {
    f"{name}, view {view}, case {which}": (
        f"create 1 3, read, read_as_client, stock 1 3, {name} {view} {which}"
    )
    for name in ("read_torn", "load_torn", "read_torn_as_client")
    for view in range(4)
    for which in (0, 1)
}


@pytest.mark.parametrize("name", STORIES_BY_HAND)
def test_story_leaves_no_reader_behind(world, name):
    run(world, STORIES_BY_HAND[name])
    check_all_readers(world)


@pytest.mark.parametrize(
    ("story", "is_complete"),
    [
        ("stock, age, stock, stock, create 0 1, prune_old 2", True),
        ("create 1 1, age, create 1 2, prune_old 2", True),
        ("create 1 1, trait 1 1, restart 1, create 1 2, prune_old 2", False),
        ("reset_feed", True),
    ],
    ids=["unread rows pruned", "first rows of a shard pruned", "all rows remain", "reset"],
)
def test_late_reader_loads_everything_only_if_rows_are_missing(world, story, is_complete):
    run(world, f"create, read, {story}")
    assert world.must_be_current(world.readers[0]) is is_complete
    run(world, "stock")
    assert not world.must_be_current(world.readers[0])


@pytest.mark.parametrize("which", [0, 1])
def test_torn_view_is_read_again_without_a_full_load(world, which):
    world.read(0, which)
    assert not world.read_torn(0, which)
    assert world.torn_views == 1


def test_feed_does_not_grow_with_prunings(world):
    for number in range(3):
        run(world, f"create, delete, age, prune_old {number % WRITERS}")
    assert world.copy()["treeclaim_feed"] == []


def test_reset_creates_missing_shards(world):
    run(world, "create, read")
    world.put(world.copy() | {"treeclaim_feed_shards": []})
    run(world, "reset_feed, create 0 1, create 1 2")
    assert world.must_be_current(world.readers[0])
    assert len(world.load().records()) == 3


def test_rows_deleted_by_hand_cause_full_load(world):
    run(world, "create, read, read_as_client, stock, stock")
    rows = world.copy()["treeclaim_feed"]
    world.put(world.copy() | {"treeclaim_feed": rows[:-1]})
    assert world.must_be_current(world.readers[0])
    run(world, "read_as_client, stock, read_as_client")
    assert not world.must_be_current(world.readers[0])
