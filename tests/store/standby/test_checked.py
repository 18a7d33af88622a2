# SPDX-License-Identifier: Apache-2.0
"""`treeclaim db check` says what becomes of reads from the standby that is configured."""

from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from tests.servers import eventually
from tests.store.standby.pairs import claim, host
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

pytestmark = pytest.mark.slow


def said_of(settings):
    """What is said of the standby, and how bad the worst of it is."""
    found = [one for one in check(settings) if one.subject == "standby"]
    return " / ".join(one.text for one in found), max(one.level for one in found)


@contextmanager
def waiting(pair, setting):
    """In this block commits wait as a setting says."""
    own = {
        "postgresql": ("ALTER SYSTEM SET synchronous_commit = '{}'", "remote_apply", "on"),
        "mariadb": ("SET GLOBAL rpl_semi_sync_master_enabled = {}", "1", "0"),
    }[pair.kind]
    text, on, off = own
    pair.primary._administer(text.format(on if setting else off))
    if pair.kind == "postgresql":
        name = "*" if setting else ""
        pair.primary._administer(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        pair.primary._administer("SELECT pg_reload_conf()")
    yield
    if setting:
        with waiting(pair, False):
            pass


def test_an_asynchronous_standby_is_said_to_be_waited_for(shared_pair, settings):
    text, level = said_of(settings)
    assert level is Level.OK
    assert "it has all that the primary has" in text
    assert "goes to the primary where that takes longer" in text


def test_what_commits_wait_for_is_said(shared_pair, settings):
    with waiting(shared_pair, True):
        wanted = {
            "postgresql": "reads there need not wait",
            "mariadb": "semi-synchronous replication: a standby has received",
        }[shared_pair.kind]
        eventually(lambda: wanted in said_of(settings)[0], "the server has the setting")


def test_a_standby_that_is_behind_is_a_warning(shared_pair, settings):
    shared_pair.standby.pause()
    with closing(Store(DatabaseSettings(settings.url))) as store:
        claim(store, host(store))
    text, level = said_of(settings)
    shared_pair.standby.resume()
    assert level is Level.WARNING
    assert "it is behind at this moment" in text


def test_what_is_no_standby_of_this_database_is_a_warning(shared_pair, settings):
    text, level = said_of(replace(settings, standby_url=settings.url))
    assert level is Level.WARNING
    assert "no standby" in text
    with shared_pair.database() as another:
        text, level = said_of(replace(settings, standby_url=another.standby_url))
        assert level is Level.WARNING
        assert "of another database" in text
    text, level = said_of(replace(settings, standby_url="sqlite:///x.db"))
    assert level is Level.WARNING
    assert "no effect" in text


def test_one_that_does_not_answer_is_a_warning(shared_pair, settings):
    gone = settings.standby_url.replace(str(shared_pair.standby.port), "1")
    text, level = said_of(replace(settings, standby_url=gone))
    assert level is Level.WARNING
    assert "does not answer" in text
