# SPDX-License-Identifier: Apache-2.0
"""Errors of the client, and the calls that it repeats."""

import socket
import threading

import pytest
from httpx import Response

from tests.service import FakeAdapter
from treeclaim.client import (
    Client,
    ClientError,
    LostConnectionError,
    Patience,
    UnreachableError,
)

VERSIONS = {"/": "1.39", "/treeclaim": "1.0"}


class Scripted(FakeAdapter):
    """An adapter with scripted answers, one for each call; errors are raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []

    def send(self, method, path, headers, json):
        if path in VERSIONS:
            return Response(200, json={"versions": [{"max_version": VERSIONS[path]}]})
        self.calls.append((method, path))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_with(*answers, seconds=60.0):
    """A client with scripted answers, which records its messages and waits."""
    messages, waited = [], []
    adapter = Scripted(*answers)
    client = Client(adapter=adapter, patience=Patience(seconds, messages.append, waited.append))
    return client, adapter, messages, waited


BUSY = Response(503, headers={"retry-after": "3"})
GOOD = Response(200, json={"good": True})


def test_error_has_all_members_of_the_response():
    error = {
        "status": 409,
        "title": "Conflict",
        "detail": "There was a conflict.\n\n Unable to allocate inventory",
        "code": "treeclaim.over_capacity",
        "request_id": "req-1",
        "conflict": {"kind": "over_capacity", "free": 1},
        "consumers": ["a"],
        "unplaced": ["b"],
        "explanation": {"feasible": False},
    }
    client, *_ = client_with(Response(409, json={"errors": [error]}))
    with pytest.raises(ClientError, match="Unable to allocate inventory") as caught:
        client.call("PUT", "/allocations/x", json={})
    value = caught.value
    assert (value.status, value.code) == (409, "treeclaim.over_capacity")
    assert value.conflict == {"kind": "over_capacity", "free": 1}
    assert value.members.keys() == {"conflict", "consumers", "unplaced", "explanation"}


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"errors": []}', '{"errors": [5]}'])
def test_error_without_json_document_has_its_status(text):
    client, *_ = client_with(Response(502, text=text))
    with pytest.raises(ClientError, match="502") as caught:
        client.get("/traits")
    assert (caught.value.status, caught.value.code, caught.value.members) == (502, None, {})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/traits"),
        ("POST", "/treeclaim/placements"),
        ("POST", "/treeclaim/providers"),
        ("POST", "/treeclaim/audit?kind=orphaned"),
    ],
)
@pytest.mark.parametrize("failure", [BUSY, UnreachableError("gone"), LostConnectionError("lost")])
def test_idempotent_call_is_retried_during_an_outage(method, path, failure):
    client, adapter, messages, waited = client_with(failure, failure, GOOD)
    assert client.call(method, path, {}) == {"good": True}
    assert adapter.calls == [(method, path)] * 3
    assert len(messages) == 1
    assert "trying again for 60 s" in messages[0]
    assert waited == ([3.0, 3.0] if failure is BUSY else [0.2, 0.4])


@pytest.mark.parametrize(
    ("method", "path", "answer", "seconds"),
    [
        ("PUT", "/allocations/x", BUSY, 60.0),
        ("POST", "/allocations", BUSY, 60.0),
        ("DELETE", "/allocations/x", BUSY, 60.0),
        ("GET", "/traits", BUSY, 0.0),
        ("GET", "/traits", Response(503), 60.0),
    ],
    ids=["PUT", "POST", "DELETE", "no time left", "no time named"],
)
def test_write_or_refusal_without_a_time_is_not_retried(method, path, answer, seconds):
    client, adapter, *_ = client_with(answer, seconds=seconds)
    with pytest.raises(ClientError, match="503") as caught:
        client.call(method, path, json={})
    assert caught.value.retry_after == (3.0 if answer is BUSY else None)
    assert len(adapter.calls) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 2",
    ],
)
def test_truncated_response_raises_a_connection_error(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        client = Client(f"http://127.0.0.1:{server.getsockname()[1]}", "admin")
        with pytest.raises(LostConnectionError, match="the connection was lost"):
            client.get("/traits")
        thread.join(10)


def test_a_refused_connection_is_an_unreachable_service():
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1"):
        Client("http://127.0.0.1:9", "admin").get("/traits")


@pytest.mark.parametrize(
    "url",
    ["", "nowhere", "ftp://host", "http://", "http://host:99999", "http://host:0", "http://[::1"],
)
def test_invalid_endpoint_url_is_refused(url):
    with pytest.raises(ClientError, match="not the URL of an endpoint"):
        Client(url, "admin")


def test_service_that_never_answered_is_not_retried():
    messages = []

    class Nowhere(Scripted):
        def send(self, *_):
            raise UnreachableError("no connection")

    client = Client(adapter=Nowhere(), patience=Patience(60, messages.append))
    with pytest.raises(UnreachableError):
        client.get("/traits")
    assert messages == []


def test_busy_proxy_is_not_reported_as_foreign_endpoint():
    class Proxy(Scripted):
        def send(self, *_):
            return Response(503, text="<html>no backend</html>")

    with pytest.raises(ClientError, match="503 <html>no backend") as caught:
        Client(adapter=Proxy()).get("/traits")
    assert caught.value.status == 503
