# SPDX-License-Identifier: Apache-2.0
"""The servers that tests start do not know of each other, nor do the databases in them."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import psycopg
import pytest
import sqlalchemy as sa

from tests.databases import EACH_DATABASE, Postgresql, empty_database
from tests.servers import eventually
from tests.service import fresh_database_on, schema_on
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.catalogue import traits as trait_names

WATCHING = """
DO $$
    DECLARE
        seen int := -1;
        present int;
        ends timestamptz := clock_timestamp() + interval '3 s';
    BEGIN
        WHILE clock_timestamp() < ends LOOP
            SELECT count(*) INTO present FROM written;
            IF present <> seen THEN
                RAISE NOTICE '%', present;
                seen := present;
            END IF;
        END LOOP;
    END
$$
"""
"""Tells at once what is visible, without a moment in which a dead parent would be noticed."""


@pytest.mark.slow
def test_killed_server_shows_no_unreplicated_commit(postgresql):
    server = Postgresql()
    session = partial(
        psycopg.connect, host="127.0.0.1", port=server.port, user="postgres", autocommit=True
    )
    seen = []

    def run(statement):
        with suppress(psycopg.OperationalError), session() as connection:
            connection.add_notice_handler(lambda notice: seen.append(notice.message_primary))
            connection.execute(statement)

    def is_waiting():
        with session() as connection:
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            return connection.execute(waiting).fetchone()

    run("CREATE TABLE written (number int)")
    server.await_another_standby(is_on=True)
    with ThreadPoolExecutor(2) as threads:
        try:
            threads.submit(run, "INSERT INTO written VALUES (1)")
            eventually(is_waiting, "the commit waits for a standby")
            threads.submit(run, WATCHING)
            eventually(lambda: seen, "what is visible is told")
        finally:
            # Else the commit would wait for ever.
            server.kill()
    server.stop()
    assert seen == ["0"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_database_copy_is_complete_and_independent(kind, tmp_path_factory):
    folders = [tmp_path_factory.mktemp("copy") for _ in range(2)]
    with (
        fresh_database_on(kind, folders[0]) as url,
        fresh_database_on(kind, folders[1]) as other,
        empty_database(kind, tmp_path_factory.mktemp("made")) as made,
    ):
        schema_on(made)
        assert described(url) == described(other) == described(made)
        before = described(other)
        change(url)
        assert described(url) != before == described(other)


def described(url):
    """The tables of a database, and what is in them but for times and what is random."""
    engine = sa.create_engine(url)
    tables = sa.MetaData()
    tables.reflect(engine)
    inspector = sa.inspect(engine)
    found = {}
    with engine.connect() as connection:
        for table in tables.sorted_tables:
            kept = [one for one in table.c if not isinstance(one.type, sa.DateTime)]
            rows = connection.execute(sa.select(*kept)).all()
            random = table.name in ("treeclaim_feed", "treeclaim_streams")
            found[table.name] = (
                str(inspector.get_columns(table.name)),
                sorted(map(str, inspector.get_indexes(table.name))),
                sorted(map(str, inspector.get_foreign_keys(table.name))),
                len(rows) if random else sorted(map(str, rows)),
            )
    engine.dispose()
    return found


def change(url):
    """Add a trait."""
    store = Store(DatabaseSettings(url))
    store.write(trait_names.ensure, "CUSTOM_MORE")
    store.close()
