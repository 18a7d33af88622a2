# SPDX-License-Identifier: Apache-2.0
"""What may be read from a standby is, and shows what was committed before, whatever becomes of it."""

import logging
import os
import signal
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace

import psutil
import pytest
import sqlalchemy as sa

from tests.servers import eventually
from tests.store.standby.pairs import (
    Reads,
    claim,
    host,
    port_of,
    port_read,
    rows_of,
    statements_at_primary,
    used_by,
    used_of,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.connecting.connections import connected
from treeclaim.store.feed.unread import _POSITIONS_SQL
from treeclaim.store.standby import standby as module
from treeclaim.store.standby.breaker import PROBING_THREAD
from treeclaim.store.standby.servers import engine_of
from treeclaim.store.standby.standby import AHEAD, BEHIND, NO_STANDBY, covers

pytestmark = pytest.mark.slow

TOO_LONG = 60.0


@pytest.fixture
def patient(monkeypatch):
    """Readers wait for the standby for as long as a busy machine needs."""
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", TOO_LONG)


def providers_of(store):
    forest = Forest()
    forest.apply(store.changes(None))
    return len(forest)


def hosts_in(replica):
    with replica.current() as forest:
        return len(forest)


@contextmanager
def paused(standby):
    standby.pause()
    yield
    standby.resume()


def is_read(pair, store):
    return port_read(store) == pair.standby.port


def test_everything_is_loaded_and_listed_there(shared_pair, store, patient):
    claim(store, host(store), 3)
    reads = Reads()
    with statements_at_primary(store) as sent:
        assert providers_of(store) == 1
        assert used_by(store) == 3
        assert port_read(store) == shared_pair.standby.port
    assert sent == []
    assert (reads.by("standby"), reads.by("primary")) == (3, 0)


def test_news_are_read_there_and_the_primary_says_how_many_there_are(
    shared_pair, store, other, patient, monkeypatch
):
    replica = Replica(store)
    first = host(other)
    with replica.current() as forest:
        assert len(forest) == 1
    reads, asked, ask = Reads(), [], store._probe.rows

    def rows(sql, parameters=()):
        asked.append(sql)
        return ask(sql, parameters)

    monkeypatch.setattr(store._probe, "rows", rows)
    with statements_at_primary(store) as sent:
        host(other)
        with replica.current() as forest:
            assert len(forest) == 2
        assert reads.by("standby") == 1
        claim(other, first, 7)
        with replica.current() as forest:
            views = forest.inventories(forest.row_of(first))
            assert [view.used for view in views] == [7]
        assert reads.by("standby") == 2
        with replica.current() as forest:
            assert len(forest) == 2
        assert (reads.by("standby"), reads.by("primary")) == (2, 0)
    assert sent == []
    assert set(asked) == {_POSITIONS_SQL}


def test_what_is_read_beside_the_forest_is_of_its_moment(shared_pair, store, other, patient):
    replica = Replica(store)
    provider = host(other)
    reads = Reads()
    for units in range(1, 6):
        claim(other, provider, 1)

        def of_forest(forest, _cursor):
            return [view.used for view in forest.inventories(forest.row_of(provider))]

        def of_store(transaction, found):

            return found, used_of(transaction, "project"), port_of(transaction)

        found = replica.at_one_moment(of_forest, of_store, may_use_standby=True)
        assert found == ([units], units, shared_pair.standby.port)
    assert reads.by("primary") == 0


def test_what_lags_is_waited_for_and_then_left_to_the_primary(shared_pair, store, other, caplog):
    provider = host(store)
    eventually(lambda: is_read(shared_pair, store), "the standby is read")
    replica = Replica(store)
    with replica.current() as forest:
        assert len(forest) == 1
    with caplog.at_level(logging.WARNING), paused(shared_pair.standby):
        for units in range(1, 4):
            claim(store if units % 2 else other, provider, 1)
            began = time.monotonic()
            assert used_by(store) == units
            assert time.monotonic() - began < 5
            host(other)
            with replica.current() as forest:
                assert len(forest) == 1 + units
            assert port_read(store) == shared_pair.primary.port
        assert providers_of(store) == 4
    lines = [one for one in caplog.messages if "standby is not read" in one]
    assert [BEHIND in one for one in lines] == [True]
    eventually(lambda: is_read(shared_pair, store), "the standby is read again")
    assert used_by(store) == 3
    assert any("read from again" in one for one in caplog.messages)


def test_a_stopped_standby_costs_no_answer_and_is_found_again(own_pair, store):
    provider = host(store)
    eventually(lambda: is_read(own_pair, store), "the standby is read")
    replica = Replica(store)
    assert hosts_in(replica) == 1
    own_pair.standby.kill()
    for units in range(1, 4):
        claim(store, provider, 1)
        host(store)
        assert hosts_in(replica) == 1 + units
        assert used_by(store) == units
        assert port_read(store) == own_pair.primary.port
    own_pair.standby.start()
    eventually(lambda: is_read(own_pair, store), "the standby is read again")
    assert used_by(store) == 3


def test_a_silent_standby_keeps_others_waiting_for_a_moment_only(shared_pair, store):
    provider = host(store)
    eventually(lambda: is_read(shared_pair, store), "the standby is read")
    process = shared_pair.standby.process.pid
    children = children_of(process)
    for one in [process, *children]:
        os.kill(one, signal.SIGSTOP)
    try:
        claim(store, provider, 1)
        began = time.monotonic()
        assert used_by(store) == 1
        assert time.monotonic() - began < 10
        began = time.monotonic()
        assert used_by(store) == 1
        assert time.monotonic() - began < 1
    finally:
        for one in [process, *children]:
            os.kill(one, signal.SIGCONT)
    eventually(lambda: is_read(shared_pair, store), "the standby is read again")


def children_of(pid):

    return [one.pid for one in psutil.Process(pid).children(recursive=True)]


def test_what_was_promoted_is_not_read_any_more(own_pair, settings, store, other, caplog):
    provider = host(store)
    eventually(lambda: is_read(own_pair, store), "the standby is read")
    with caplog.at_level(logging.WARNING):
        replica = Replica(store)
        assert hosts_in(replica) == 1
        own_pair.standby.promote()
        promoted = DatabaseSettings(settings.standby_url)
        with closing(Store(promoted)) as beyond:
            eventually(lambda: writes(beyond), "it takes writes")
        claim(other, provider, 2)
        assert hosts_in(replica) == 1
        assert used_by(store) == 2
        assert providers_of(store) == 1
        eventually(lambda: NO_STANDBY in caplog.text, "the operator is told")
        assert not is_read(own_pair, store)


def writes(store):

    try:
        return host(store)
    except StoreUnavailableError:
        return None


def test_a_server_that_is_no_standby_is_not_read(shared_pair, settings, caplog):
    wrong = replace(settings, standby_url=settings.url)
    with closing(Store(wrong)) as store, caplog.at_level(logging.WARNING):
        reads = Reads()
        assert providers_of(store) == 0
        assert (reads.by("standby"), reads.by("primary")) == (0, 1)
    assert NO_STANDBY in caplog.text


def test_a_standby_of_another_database_is_not_read(shared_pair, settings, caplog):
    with shared_pair.database() as another:
        wrong = replace(settings, standby_url=another.standby_url)
        with closing(Store(wrong)) as store, caplog.at_level(logging.WARNING):
            assert used_by(store) == 0
            assert port_read(store) == shared_pair.primary.port
    assert BEHIND in caplog.text


def test_sessions_there_only_read(shared_pair, settings):
    engine = engine_of(replace(settings, standby_url=settings.url))
    with (
        pytest.raises(sa.exc.DBAPIError, match=r"(?i)read.?only"),
        connected(engine) as connection,
        connection.begin(),
    ):
        connection.exec_driver_sql("DELETE FROM treeclaim_streams")
    engine.dispose()


def test_a_commit_that_the_primary_has_not_promised_is_not_shown(own_pair, store, other, caplog):
    provider = host(store)
    # Project and user are written before all claims of theirs.
    claim(other, provider, 1)
    eventually(lambda: is_read(own_pair, store), "the standby is read")
    own_pair.primary.await_another_standby(True)
    writer = threading.Thread(target=claim, args=(other, provider, 5))
    try:
        writer.start()
        eventually(lambda: on_standby(own_pair, store) == 6, "the standby has it")
        with caplog.at_level(logging.WARNING):
            assert used_by(store) == 1
        assert AHEAD in caplog.text
    finally:
        own_pair.primary.await_another_standby(False)
        writer.join()
    assert used_by(store) == 6
    eventually(lambda: is_read(own_pair, store), "the standby is read again")
    assert used_by(store) == 6


def on_standby(pair, store):
    """How much is used as the standby shows it."""

    name = store.engine.url.database
    ((used,),) = rows_of(pair.standby.url(name), "SELECT coalesce(sum(used), 0) FROM allocations")
    return used


def test_closing_ends_the_thread_that_looks(shared_pair, settings):
    with closing(Store(replace(settings, standby_url=settings.url))) as store:
        assert used_by(store) == 0
        assert any(one.name == PROBING_THREAD for one in threading.enumerate())
    assert not any(one.name == PROBING_THREAD for one in threading.enumerate())


def test_each_reader_sees_what_was_committed_before_while_others_write(shared_pair, store, other):
    """Each writer tells how much it has written; a reader sees that much, and no more than was begun."""
    provider = host(other)
    replica = Replica(store)
    begun, done, reads = [0], [0], Reads()
    ended = threading.Event()

    def write():
        while not ended.is_set():
            begun[0] += 1
            claim(other if begun[0] % 2 else store, provider, 1)
            done[0] += 1

    def of_forest(forest, _cursor):
        return sum(view.used for view in forest.inventories(forest.row_of(provider)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while done[0] < 60:
            least = done[0]
            assert least <= used_by(store) <= begun[0]
            least = done[0]

            found = replica.at_one_moment(
                of_forest,
                lambda transaction, used: (used, used_of(transaction, "project")),
                may_use_standby=True,
            )
            assert found[0] == found[1]
            assert least <= found[0] <= begun[0]
    finally:
        ended.set()
        writer.join()
    assert reads.by("standby") > 0


def test_streams_cover_others_if_none_is_behind():
    assert covers({1: 5, 2: 1}, {1: 5})
    assert not covers({1: 4, 2: 9}, {1: 5})
    assert not covers({}, {1: 1})
