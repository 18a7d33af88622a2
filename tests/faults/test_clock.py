# SPDX-License-Identifier: Apache-2.0
"""The clock of the machine goes backwards and leaps ahead; claims do not depend on it."""

import shutil
import subprocess
import uuid
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from tests.bodies import claim_of
from tests.databases import empty_database
from tests.faults.harness.load import CAPACITY, Load, build
from tests.faults.harness.service import client_of, running
from tests.resources import needs
from tests.servers import eventually

WRITES = 30
VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}

pytestmark = pytest.mark.slow


@pytest.fixture
def clock(tmp_path, faketime):
    """A file with the error of a service's clock, read at each call."""
    file = tmp_path / "clock"
    file.write_text("+0")
    return file


def running_by(clock, database, folder, **options):
    """A service with a clock that is shifted by the value in a file."""
    prefix = (shutil.which("env"), f"LD_PRELOAD={preloaded(shutil.which('faketime'))}")
    return running(
        database,
        folder,
        prefix=prefix,
        FAKETIME_TIMESTAMP_FILE=str(clock),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
        **options,
    )


def test_clock_leaps_do_not_affect_claims(clock, tmp_path):
    database = f"sqlite:///{tmp_path / 'placement.db'}"
    with running_by(clock, database, tmp_path) as service:
        with Load(service.url) as load:
            for leap in ("-7200", "+259200", "-432000"):
                load.wait_for(WRITES)
                clock.write_text(leap)
            load.wait_for(WRITES)
        load.judge()


@pytest.mark.parametrize(
    ("kind", "ahead"),
    [
        pytest.param("postgresql", "+3600", marks=needs("postgresql")),
        pytest.param("mariadb", "-3600", marks=needs("mariadb")),
    ],
)
def test_hold_expires_by_the_database_clock(kind, ahead, clock, tmp_path):
    with empty_database(kind, tmp_path) as database:
        clock.write_text(ahead)
        with (
            running_by(clock, database, tmp_path, workers=1) as service,
            client_of(service.url) as client,
        ):
            client.headers.update(VERSION)
            host, hold = build(service.url).hosts[0], str(uuid.uuid4())
            hold_body = claim_of(
                {host: {"resources": {"VCPU": 1}}}, consumer_type="TREECLAIM_HOLD"
            )
            put = client.put(f"/allocations/{hold}", json=hold_body | {"hold": {}})
            assert put.status_code == 204, put.text
            other = claim_of({host: {"resources": {"VCPU": CAPACITY["VCPU"]}}})
            for leap in (ahead, "-86400", "+86400", ahead):
                clock.write_text(leap)
                # An end that has come by the worker's clock has not, and the other way round.
                assert until(client, hold, now_of(database) + timedelta(minutes=30)) == 200
                assert until(client, hold, now_of(database) - timedelta(minutes=30)) == 400
                assert claim(client, other) == 409
            end = now_of(database) + timedelta(seconds=3)
            assert until(client, hold, end) == 200
            eventually(lambda: now_of(database) > end + timedelta(seconds=1))
            # A claim without room removes ended holds, if they still exist.
            assert claim(client, other) == 204
            assert client.get(f"/allocations/{hold}").json()["allocations"] == {}


def now_of(database):
    """The time by the database's clock, to the second before."""
    engine = sa.create_engine(database)
    question = {
        "postgresql": "SELECT extract(epoch FROM now())",
        "mysql": "SELECT unix_timestamp()",
    }
    with engine.connect() as connection:
        seconds = connection.exec_driver_sql(question[engine.dialect.name]).scalar()
    engine.dispose()
    return datetime.fromtimestamp(int(seconds), UTC)


def until(client, hold, time):
    """Set the end of a hold; return the status."""
    body = {"holds": {hold: {"until": time.isoformat()}}}
    return client.post("/treeclaim/holds", json=body).status_code


def claim(client, body):
    """Claim for a new consumer; return the status."""
    return client.put(f"/allocations/{uuid.uuid4()}", json=body).status_code


def preloaded(faketime):
    """The library that the program would preload, the one for threads."""
    result = subprocess.run(
        [faketime, "-m", "-f", "+0", "printenv", "LD_PRELOAD"],
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip().split(":")[-1]
