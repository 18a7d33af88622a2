# SPDX-License-Identifier: Apache-2.0
"""A 500 shows the client no traceback, path or module name; the log has them (contract page 00, section 6)."""

import logging
import re
from pathlib import Path

import pytest

from tests.service import client_of, services_on
from treeclaim.model.errors import PolicyFileError

SECRET = "/usr/lib/python3/secret.py, line 7, in treeclaim.store"
EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}


@pytest.fixture
def service(tmp_path):
    """The services, and a client."""
    with (
        services_on(tmp_path) as (services, application),
        client_of(application, **EXTENDED) as client,
    ):
        yield services, client


def fail(*_arguments, **_options):
    """Fail with a message that no client may see."""
    raise RuntimeError(SECRET)


def fail_in_a_handler(services, client, monkeypatch):
    """Fail while a handler reads from the store."""
    monkeypatch.setattr(services.store, "read", fail)
    return client.get("/allocations/6f0c1c7e-8b3f-4b8e-8a55-0d9a1f3a2f11")


def fail_with_internal_error(services, client, monkeypatch):
    """Fail with an error of the model that has no response of its own."""

    def fail_internally(*_arguments, **_options):
        raise PolicyFileError(SECRET)

    monkeypatch.setattr(services.store, "read", fail_internally)
    return client.get("/allocations/6f0c1c7e-8b3f-4b8e-8a55-0d9a1f3a2f11")


def fail_in_a_child(_services, client, monkeypatch):
    """Fail in a child that explains."""
    monkeypatch.setattr("treeclaim.replica.questions.explain_request", fail)
    return client.get("/allocation_candidates/explain?resources=VCPU:1")


def fail_in_a_plan(_services, client, monkeypatch):
    """Fail in a child that plans."""
    monkeypatch.setattr("treeclaim.replica.planning.attach_requests", fail)
    return client.post("/treeclaim/survival", json={"domains": "tree"})


@pytest.mark.parametrize(
    "cause_failure",
    [fail_in_a_handler, fail_with_internal_error, fail_in_a_child, fail_in_a_plan],
)
def test_traceback_is_logged_and_not_sent(service, monkeypatch, caplog, cause_failure):
    services, client = service
    with caplog.at_level(logging.ERROR):
        response = cause_failure(services, client, monkeypatch)
    assert response.status_code == 500
    (error,) = response.json()["errors"]
    assert not re.search(r"Traceback|\.py|line \d|treeclaim\.|Error:|/usr", response.text)
    assert error["request_id"] in error["detail"]
    assert SECRET in caplog.text


def test_unavailable_database_gives_503_with_retry_after(service, tmp_path):
    services, client = service
    path = "/allocations/20000000-0000-4000-8000-000000000001"
    assert client.get(path).status_code == 200
    services.store.engine.dispose()
    database, away = Path(services.store.engine.url.database), tmp_path / "away.db"
    database.rename(away)
    database.mkdir()
    try:
        answer = client.get(path)
        assert answer.status_code == 503
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert answer.json()["errors"][0]["title"] == "Service Unavailable"
        assert client.get("/").status_code == 200
    finally:
        database.rmdir()
        away.rename(database)
    answer = client.get(path)
    assert answer.status_code == 200
    assert "retry-after" not in answer.headers
