# SPDX-License-Identifier: Apache-2.0
"""The connection that looks at the feed: replaced once, and a failure that stays is told as such."""

import pytest
import sqlalchemy as sa

from tests.databases import EACH_DATABASE, empty_database
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.failures.outages import Outages
from treeclaim.store.feed.probe import Probe


@pytest.fixture(params=EACH_DATABASE)
def probe(request, tmp_path):
    """A probe of an empty database."""
    with empty_database(request.param, tmp_path) as url:
        store = Store(DatabaseSettings(url))
        made = Probe(store.engine, Outages())
        yield made
        made.close()
        store.close()


def test_a_lost_connection_is_replaced_once(probe):
    assert probe.rows("SELECT 1") == [(1,)]
    probe._connection.close()
    assert probe.rows("SELECT 2") == [(2,)]


def test_a_failure_that_stays_says_that_the_store_is_unavailable_and_no_sql(probe):
    with pytest.raises(StoreUnavailableError) as caught:
        probe.rows("SELECT secret FROM nowhere")
    assert "nowhere" not in str(caught.value)
    assert probe.rows("SELECT 3") == [(3,)]


def test_the_version_stays_until_another_connection_commits(probe):
    before = probe.version()
    if before is None:
        pytest.skip("the database has no cheap number")
    assert probe.version() == before
    with probe._engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE things (id INTEGER)"))
    changed = probe.version()
    assert changed != before
    assert probe.version() == changed


def test_versions_of_two_connections_are_never_the_same(probe):
    before = probe.version()
    probe._drop()
    assert before is None or probe.version() != before
