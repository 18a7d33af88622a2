# SPDX-License-Identifier: Apache-2.0
"""A reader that caught up after prunings, restores and rollbacks knows what a fresh one knows."""

import shutil
from contextlib import closing

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.databases import EACH_DATABASE, EACH_SERVER, filled_database
from tests.store.feed.worlds_of_readers import (
    PROVIDERS,
    READERS,
    WRITERS,
    Reader,
    World,
    prepare,
)
from tests.tiers import examples

HAPPENINGS = (
    *(
        "stock",
        "describe",
        "claim",
        "claim",
        "claim",
        "move",
        "release",
        "claim_without_amounts",
    ),
    *("read", "read", "change", "change", "change", "replace", "trait"),
    *("restart", "age", "prune_everything", "prune_old", "backup", "restore"),
)
STORIES = st.lists(
    st.tuples(
        st.sampled_from(HAPPENINGS),
        st.integers(0, WRITERS - 1),
        st.integers(0, len(PROVIDERS) - 1),
    ),
    # Short ones find little; those that fail are shrunk to readings that do nothing.
    min_size=20,
    max_size=40,
)


@pytest.fixture(params=EACH_DATABASE)
def world(request, tmp_path):
    """A database of each kind, with writers and readers."""
    with filled_database(request.param, prepare, tmp_path) as url, closing(World(url)) as made:
        yield made


def tell(world, *story):
    """Let things happen in this order: names of what a world can do, each with two numbers."""
    for name, writer, which in story:
        getattr(world, name)(writer, which)


def everybody_is_current(world):
    """Let all readers catch up and compare."""
    for number in range(READERS):
        world.read(0, number)


def live_through(world, story):
    """Let a story happen; whoever follows closely loads everything after a restored backup only."""
    close_by = Reader(world.onlooker)
    world.must_be_current(close_by)
    for name, writer, which in story:
        tell(world, (name, writer, which))
        assert name == "restore" or not close_by.catch_up(), name
        world.must_be_current(close_by)
    everybody_is_current(world)


ID_OF_AN_OLD_STREAM = [
    ("change", 0, 0),
    ("prune_everything", 0, 1),
    ("claim", 1, 0),
    ("restore", 2, 0),
    ("change", 2, 2),
    ("restart", 2, 2),
    ("change", 2, 3),
    ("claim", 0, 3),
    ("stock", 2, 2),
]
"""A story in which a stream of a restored database has the id of a stream that was polled before."""


@pytest.mark.slow
@example(story=ID_OF_AN_OLD_STREAM)
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(story=STORIES)
def test_random_histories_leave_no_reader_behind(story, tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    with filled_database("sqlite", prepare, folder) as url, closing(World(url)) as world:
        live_through(world, story)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_SERVER)
def test_random_histories_on_servers_leave_no_reader_behind(kind, tmp_path):
    with filled_database(kind, prepare, tmp_path) as url:

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        @given(story=STORIES)
        def every_story(story):
            with closing(World(url)) as world:
                live_through(world, story)
                # The next one begins as this one did.
                world.restore(0, len(world.backups) - 1)

        every_story()


PRUNE, READ = ("prune_everything", 2, 0), ("read", 0, 0)
STORIES_BY_HAND = {
    "a stream is created and pruned between reads": [
        *[("create", 0, 0), READ, ("create", 1, 1), ("age", 0, 0), ("stock", 0, 0)],
        ("prune_old", 2, 0),
    ],
    "the only stream is created and pruned once": [
        *[("create", 0, 0), PRUNE, READ, ("create", 1, 1), PRUNE],
    ],
    "the only stream is created and pruned thrice": [
        *[("create", 0, 0), PRUNE, READ, ("create", 1, 1), PRUNE, PRUNE, PRUNE],
    ],
    "a new stream is at the position of a pruned one": [
        *[
            ("create", 0, 0),
            ("stock", 0, 0),
            ("stock", 0, 0),
            READ,
            PRUNE,
            PRUNE,
            ("create", 1, 1),
        ],
    ],
    "a position decreases": [
        *[("create", 0, 0), ("backup", 0, 0), ("stock", 0, 0), READ, ("restore", 0, 0)],
    ],
    "a restore loses a stream": [("backup", 0, 0), ("create", 0, 0), READ, ("restore", 0, 0)],
    "positions are reached again": [
        *[
            ("create", 0, 0),
            ("restart", 0, 0),
            ("backup", 0, 0),
            ("create", 1, 1),
            ("stock", 1, 1),
        ],
        *[READ, ("restore", 0, 0), ("create", 2, 2), ("stock", 2, 2)],
    ],
    "positions are exceeded": [
        *[
            ("create", 0, 0),
            ("restart", 0, 0),
            ("backup", 0, 0),
            ("create", 1, 1),
            ("stock", 1, 1),
        ],
        *[READ, ("restore", 0, 0), ("create", 2, 2), ("stock", 2, 2), ("stock", 2, 2)],
    ],
    "a restore opens a stream again where its owner left it": [
        *[("create", 0, 0), ("backup", 0, 0), PRUNE, READ, ("restore", 0, 0), ("stock", 0, 0)],
    ],
    "a lost commit is not the end of a closed stream": [
        *[("create", 0, 0), ("backup", 0, 0), ("stock", 0, 0), READ, ("restore", 0, 0), PRUNE],
    ],
    "a stream was closed in a lost history": [
        *[("backup", 0, 0), ("create", 0, 0), PRUNE, READ, ("restore", 0, 0)],
    ],
    "a history of prunings is lost": [
        *[("create", 0, 0), ("create", 1, 1), ("age", 0, 0), ("stock", 0, 0), ("backup", 0, 0)],
        *[("prune_old", 2, 0), READ, ("restore", 0, 0), ("restart", 1, 0), ("create", 1, 2)],
        *[PRUNE, PRUNE, PRUNE],
    ],
}


@pytest.mark.parametrize("name", STORIES_BY_HAND)
def test_story_leaves_no_reader_behind(world, name):
    tell(world, *STORIES_BY_HAND[name])
    everybody_is_current(world)


def test_writer_abandons_stream_reassigned_after_restore(world):
    tell(world, ("backup", 0, 0), ("create", 0, 0), ("restore", 0, 0), ("create", 1, 1))
    # Where ids come again, the other writer's stream has the same one, and the same position.
    tell(world, ("create", 0, 2))
    with world.onlooker.engine.connect() as connection:
        result = connection.exec_driver_sql(
            "SELECT position FROM treeclaim_streams WHERE closed_in IS NULL AND epoch IS NULL"
        )
        assert list(result.scalars()) == [1, 1]
    tell(world, ("create", 1, 3))
    everybody_is_current(world)


def test_reader_loads_everything_once_when_unread_rows_are_pruned(world):
    tell(world, ("create", 0, 0), ("read", 0, 0), ("stock", 0, 0), ("age", 0, 0))
    tell(world, ("stock", 0, 0), ("stock", 0, 0), ("create", 0, 1), ("prune_old", 2, 0))
    reader = world.readers[0]
    assert world.must_be_current(reader)
    tell(world, ("stock", 0, 0))
    assert not world.must_be_current(reader)


def test_pruned_first_rows_of_new_stream_cause_full_load(world):
    tell(world, ("create", 0, 0), ("read", 0, 0), ("create", 1, 1), ("age", 0, 0))
    tell(world, ("create", 1, 2), ("prune_old", 2, 0))
    assert world.must_be_current(world.readers[0])


def test_late_reader_needs_no_full_load_while_its_rows_remain(world):
    tell(world, ("create", 0, 0), ("read", 0, 0), ("create", 1, 1), ("trait", 1, 1))
    tell(world, ("restart", 1, 0), ("create", 1, 2), ("prune_old", 2, 0))
    assert not world.must_be_current(world.readers[0])


def test_readers_load_everything_until_an_epoch_exists(world):
    reader = world.readers[0]
    with world.onlooker.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM treeclaim_streams")
    tell(world, ("create", 0, 0))
    assert world.must_be_current(reader)
    tell(world, ("stock", 0, 0))
    assert world.must_be_current(reader)
    tell(world, ("prune_old", 2, 0))
    world.must_be_current(reader)
    tell(world, ("stock", 0, 0))
    assert not world.must_be_current(reader)


def test_the_tables_of_the_feed_do_not_grow_with_prunings(world):
    for number in range(6):
        tell(world, ("restart", 0, 0), ("create", 0, 0), ("delete", 0, 0), ("age", 0, 0))
        tell(world, ("prune_old", number % WRITERS, 0))
    with world.onlooker.engine.connect() as connection:
        streams = connection.exec_driver_sql("SELECT count(*) FROM treeclaim_streams").scalar()
        result = connection.exec_driver_sql("SELECT count(*) FROM treeclaim_feed").scalar()
    # The stream and the epoch of the last pruning, and the epoch of the one before.
    assert (streams, result) == (3, 0)
