# SPDX-License-Identifier: Apache-2.0
"""Whatever is pruned, restored or given up: a reader that caught up knows what a fresh one knows."""

import shutil
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.databases import KINDS, empty_database
from tests.stores.worlds_of_readers import PROVIDERS, READERS, WRITERS, World, prepare

HAPPENINGS = (
    *("create", "delete", "stock", "stock", "trait"),
    *("restart", "age", "prune_everything", "prune_old"),
    *("backup", "restore", "read", "read", "read"),
)
STORIES = st.lists(
    st.tuples(
        st.sampled_from(HAPPENINGS),
        st.integers(0, WRITERS - 1),
        st.integers(0, len(PROVIDERS) - 1),
    ),
    min_size=4,
    max_size=40,
)


@pytest.fixture(scope="module")
def empty_file(tmp_path_factory):
    """An empty SQLite database, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "placement.db"
    prepare(f"sqlite:///{path}")
    return path


@pytest.fixture(params=KINDS)
def world(request, tmp_path):
    """A database of each kind, with writers and readers."""
    with empty_database(request.param, tmp_path) as url:
        prepare(url)
        with closing(World(url)) as made:
            yield made


def tell(world, *story):
    """Let things happen in this order: names of what a world can do, each with two numbers."""
    for name, writer, which in story:
        getattr(world, name)(writer, which)


def everybody_is_current(world):
    """Let all readers catch up and compare."""
    for number in range(READERS):
        world.read(0, number)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=STORIES)
def test_no_story_leaves_a_reader_behind(story, empty_file, tmp_path_factory):
    path = tmp_path_factory.mktemp("story") / "placement.db"
    shutil.copyfile(empty_file, path)
    with closing(World(f"sqlite:///{path}")) as world:
        tell(world, *story)
        everybody_is_current(world)
    shutil.rmtree(path.parent)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[1:])
def test_no_story_leaves_a_reader_of_a_server_behind(kind, tmp_path):
    with empty_database(kind, tmp_path) as url:
        prepare(url)

        @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
        @given(story=STORIES)
        def every_story(story):
            with closing(World(url)) as world:
                tell(world, *story)
                everybody_is_current(world)
                world.restore(0, len(world.backups) - 1)

        every_story()


def test_a_stream_that_is_born_and_pruned_between_two_reads_is_noticed(world):
    tell(world, ("create", 0, 0), ("read", 0, 0), ("create", 1, 1))
    tell(world, ("age", 0, 0), ("stock", 0, 0), ("prune_old", 2, 0))
    everybody_is_current(world)


@pytest.mark.parametrize("prunings", [1, 2, 3])
def test_a_stream_that_is_born_and_pruned_while_nobody_else_writes_is_noticed(world, prunings):
    tell(world, ("create", 0, 0), ("prune_everything", 2, 0), ("read", 0, 0))
    tell(world, ("create", 1, 1), *[("prune_everything", 2, 0)] * prunings)
    everybody_is_current(world)


def test_a_stream_born_after_another_one_was_pruned_is_not_taken_for_it(world):
    tell(world, ("create", 0, 0), ("stock", 0, 0), ("stock", 0, 0), ("read", 0, 0))
    tell(world, ("prune_everything", 2, 0), ("prune_everything", 2, 0), ("create", 1, 1))
    everybody_is_current(world)


def test_a_position_that_went_back_is_noticed(world):
    tell(world, ("create", 0, 0), ("backup", 0, 0), ("stock", 0, 0), ("read", 0, 0))
    tell(world, ("restore", 0, 0))
    everybody_is_current(world)


@pytest.mark.parametrize("more", [0, 1])
def test_positions_that_went_back_and_came_again_are_noticed(world, more):
    tell(world, ("create", 0, 0), ("restart", 0, 0), ("backup", 0, 0))
    tell(world, ("create", 1, 1), ("stock", 1, 1), ("read", 0, 0), ("restore", 0, 0))
    tell(world, ("create", 2, 2), ("stock", 2, 2), *[("stock", 2, 2)] * more)
    everybody_is_current(world)
