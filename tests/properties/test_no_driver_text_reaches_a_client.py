# SPDX-License-Identifier: Apache-2.0
"""No text of a driver shows a client hosts, users, names or statements.

SQLite's own connections are made to fail at some statement, with each class of error that a driver
has and with texts as drivers word them, while a real service answers.
"""

import json
import sqlite3
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.described import HOST, NUMBER, bodies, described
from tests.faults.harness.bodies import assert_tells_nothing
from tests.service import client_of, services_on
from treeclaim.admin.app import make_admin_application
from treeclaim.model.microversions import NEWEST

HEADERS = {"openstack-api-version": NEWEST.header, "content-type": "application/json"}
SECRETS = ("db1.example", "10.1.2.3", "5432", "placement_rw", "placementdb")
TEXTS = (
    'connection to server at "db1.example" (10.1.2.3), port 5432 failed: FATAL: no such user',
    'FATAL:  password authentication failed for user "placement_rw"',
    "(2003, \"Can't connect to MySQL server on 'db1.example' (timed out)\")",
    "(1045, \"Access denied for user 'placement_rw'@'10.1.2.3' (using password: YES)\")",
    "Unknown database 'placementdb'",
    'relation "placementdb.resource_providers" does not exist LINE 1: SELECT id FROM projects',
    "UNIQUE constraint failed: placementdb.projects.external_id",
    "Lost connection to MySQL server at 'db1.example:5432' during query (timed out)",
    "",
)
ERRORS = (
    sqlite3.OperationalError,
    sqlite3.DatabaseError,
    sqlite3.InternalError,
    sqlite3.ProgrammingError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.NotSupportedError,
    sqlite3.InterfaceError,
    sqlite3.Error,
)
NAMES = ("", "SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_IOERR", "SQLITE_FULL")
FIRST_STATEMENTS = 14


class Fault:
    """When and how the next statement fails; `countdown` is None for never."""

    countdown = None
    for_good = False
    error: sqlite3.Error = None

    @classmethod
    def pass_by(cls):
        if cls.countdown is None:
            return
        if cls.countdown > 0:
            cls.countdown -= 1
            return
        if not cls.for_good:
            cls.countdown = None
        raise cls.error


class FailingCursor(sqlite3.Cursor):
    def execute(self, *arguments):
        Fault.pass_by()
        return super().execute(*arguments)

    def executemany(self, *arguments):
        Fault.pass_by()
        return super().executemany(*arguments)


class FailingConnection(sqlite3.Connection):
    def cursor(self, *_):
        return super().cursor(FailingCursor)

    def commit(self):
        Fault.pass_by()
        super().commit()


def make_failing(_dialect, _record, _arguments, parameters):
    Fault.pass_by()
    parameters["factory"] = FailingConnection


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """Clients of a service with failing database connections, and of its admin listener."""
    sa.event.listen(sa.Engine, "do_connect", make_failing)
    service_options = {"placement.allocation_conflict_retry_count": 2}
    with services_on(tmp_path_factory.mktemp("failing"), **service_options) as (
        services,
        application,
    ):
        admin = make_admin_application(services.store, [])
        with client_of(application) as client, client_of(admin) as of_admin:
            client.headers["x-roles"] = "admin,service"
            yield client, of_admin
    sa.event.remove(sa.Engine, "do_connect", make_failing)


def calls():
    """Method, path and body of each operation, with which it goes as far as the database."""
    for method, path, operation in described():
        query = "?resources=VCPU:1" if path.startswith("/allocation_candidates") else ""
        value = next(bodies(operation), None)
        yield (
            method,
            path + query,
            json.dumps(value).replace(f'"{NUMBER}"', "1").replace(NUMBER, "1"),
        )


faults = st.fixed_dictionaries(
    {
        "statement": st.integers(0, FIRST_STATEMENTS),
        "for_good": st.booleans(),
        "kind": st.sampled_from(ERRORS),
        "text": st.sampled_from(TEXTS),
        "name": st.sampled_from(NAMES),
    }
)


@contextmanager
def failing(statement, for_good, kind, text, name):
    """Make a statement fail while the block runs."""
    Fault.error = kind(text)
    Fault.error.sqlite_errorname = name
    Fault.countdown, Fault.for_good = statement, for_good
    try:
        yield
    finally:
        Fault.countdown = None


def assert_clean(answer):
    assert answer.status_code != 500, answer.text
    # Identifiers of requests are random, and may hold any digits.
    text = answer.text.replace(answer.headers.get("x-openstack-request-id", "-"), "")
    if answer.status_code >= 400:
        assert not any(secret in text for secret in SECRETS), text
        assert_tells_nothing(text)
    if answer.status_code == 503:
        assert int(answer.headers["retry-after"]) > 0


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(call=st.sampled_from(list(calls())), fault=faults)
def test_no_driver_text_reaches_a_client(clients, call, fault):
    client, _ = clients
    client.post("/resource_providers", json={"name": HOST, "uuid": HOST})
    method, path, body = call
    content = None if body == "null" else body
    with failing(**fault):
        answer = client.request(method, path, content=content, headers=HEADERS)
    assert_clean(answer)
    assert client.get("/resource_providers").status_code == 200


@settings(max_examples=60, deadline=None)
@given(fault=faults)
def test_admin_listener_shows_no_driver_text(clients, fault):
    _, admin = clients
    with failing(**fault):
        answer = admin.get("/ready")
    assert answer.status_code in {200, 503}
    assert not any(secret in answer.text for secret in SECRETS), answer.text
    assert_tells_nothing(answer.text)
