# SPDX-License-Identifier: Apache-2.0
"""A database that cannot do what writes rely on is refused in a sentence: at start, and by `db check`."""

import pytest

from tests import stand_ins
from tests.databases import EACH_SERVER
from tests.service import fresh_database_on, start_on
from tests.stand_ins import standing_in
from treeclaim.cli.main import main
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("postgresql", "mariadb")]

COCKROACH = "CockroachDB CCL v26.3.0"
YUGABYTE = "PostgreSQL 15.2-YB-2025.1.0.0-b1"

AT_START = {
    "snapshots": (
        "postgresql",
        stand_ins.YUGABYTEDB | stand_ins.SNAPSHOTS,
        (
            f"{YUGABYTE} gives transactions that write the isolation repeatable read: they would not see "
            "what others have committed while they waited for a lock. Start YugabyteDB's tablet servers "
            "with yb_enable_read_committed_isolation=true."
        ),
    ),
    "no shared locks": (
        "postgresql",
        stand_ins.YUGABYTEDB | stand_ins.NO_SHARED_LOCKS,
        (
            f"{YUGABYTE} has no locks of rows that transactions share: what one relies on could be deleted "
            "by another. Use a later release of the server, or PostgreSQL or MariaDB."
        ),
    ),
    "optimistic": (
        "mariadb",
        stand_ins.TIDB | stand_ins.OPTIMISTIC,
        (
            f"{stand_ins.TIDB_VERSION} gives transactions that write the isolation optimistic: they would "
            "not see what others have committed while they waited for a lock. SET GLOBAL tidb_txn_mode = "
            "'pessimistic'."
        ),
    ),
}
NO_LOCK = (
    "has no lock under which the schema could be made by one process alone. Use a later release of the "
    "server, or PostgreSQL or MariaDB."
)
AT_SYNC = {
    "refused": (stand_ins.YUGABYTEDB | stand_ins.NO_ADVISORY_LOCKS, f"{YUGABYTE} {NO_LOCK}"),
    "unknown": (stand_ins.COCKROACHDB | stand_ins.NO_SUCH_LOCKS, f"{COCKROACH} {NO_LOCK}"),
    "empty": (
        stand_ins.COCKROACHDB | stand_ins.EMPTY_LOCKS,
        (
            f"{COCKROACH} gives the lock under which the schema is made to two at once. Use a later release "
            "of the server, or PostgreSQL or MariaDB."
        ),
    ),
}


def missing(url):
    """What a check finds to be missing, as sentences."""
    return [
        f"{found.text}. {found.remedy}"
        for found in check(DatabaseSettings(url))
        if found.subject == "abilities" and found.level is Level.ERROR
    ]


def file_in(folder):
    return str(folder / "placement.conf")


@pytest.mark.parametrize("case", AT_START)
def test_what_writes_rely_on_is_asked_at_start(case, tmp_path, capsys):
    kind, rewrites, sentence = AT_START[case]
    with fresh_database_on(kind, tmp_path) as direct, standing_in(direct, rewrites) as url:
        with pytest.raises(StoreUnavailableError) as refused, start_on(url, tmp_path):
            pass
        assert str(refused.value) == sentence
        assert main(["db", "sync", "--config-file", file_in(tmp_path)]) == 1
        assert sentence in capsys.readouterr().err
        assert missing(url) == [sentence]


@pytest.mark.parametrize("case", AT_SYNC)
def test_who_makes_the_schema_has_to_be_alone(case, tmp_path, capsys):
    rewrites, sentence = AT_SYNC[case]
    with fresh_database_on("postgresql", tmp_path) as direct, standing_in(direct, rewrites) as url:
        at_start = {"placement_database.sync_on_startup": True}
        with pytest.raises(StoreUnavailableError) as refused, start_on(url, tmp_path, **at_start):
            pass
        assert str(refused.value) == sentence
        assert main(["db", "sync", "--config-file", file_in(tmp_path)]) == 1
        assert sentence in capsys.readouterr().err
        assert missing(url) == [sentence]
        # Where somebody has made it, it is not needed.
        with start_on(url, tmp_path):
            pass


@pytest.mark.parametrize("kind", EACH_SERVER)
def test_the_databases_themselves_lack_nothing(kind, tmp_path):
    with fresh_database_on(kind, tmp_path) as url:
        # Who asks leaves the lock to others.
        assert [missing(url), missing(url)] == [[], []]
        assert ("abilities", Level.OK) in [
            (found.subject, found.level) for found in check(DatabaseSettings(url))
        ]
