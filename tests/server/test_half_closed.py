# SPDX-License-Identifier: Apache-2.0
"""Clients that say that they send no more, and wait for what they have asked."""

import contextlib
import socket

import pytest

from tests.api.resources.extension.watchers import place_on
from tests.server.fronts import running
from tests.servers import eventually


class Told:
    """Answers each request with its path and body, once the server knows that no more will come.

    Attributes:
        asked: Paths, in the order in which they were asked for.
    """

    def __init__(self, waits=True):
        self.asked = []
        self._waits = waits

    def __call__(self, environment, start_response):
        """Answer."""
        self.asked.append(environment["PATH_INFO"])
        body = environment["wsgi.input"].read()
        if self._waits:
            eventually(environment["treeclaim.client_gone"], "the end of the client's half")
        told = environment["PATH_INFO"].encode() + body
        start_response("200 OK", [("Content-Length", str(len(told)))])
        return [told]


def request(path, body=b"", *lines):
    head = "\r\n".join((f"PUT {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *lines))
    return head.encode() + b"\r\n\r\n" + body


def everything(client):
    """All that comes until the server closes."""
    data = b""
    while piece := client.recv(1 << 16):
        data += piece
    return data


@pytest.mark.parametrize("count", [1, 2, 20])
def test_all_that_was_asked_before_is_answered_in_its_order(count):
    told = Told()
    with running(told) as server, server.connect() as client:
        paths = [f"/{number}" for number in range(count)]
        client.sendall(b"".join(request(path, b"!") for path in paths))
        client.shutdown(socket.SHUT_WR)
        answers = everything(client).split(b"HTTP/1.1 200 OK")[1:]
    assert [answer.rpartition(b"\r\n\r\n")[2].decode() for answer in answers] == [
        f"{path}!" for path in paths
    ]
    assert told.asked == paths


def test_what_is_refused_after_another_answer_is_told():
    with running(Told()) as server, server.connect() as client:
        client.sendall(request("/first") + b"this is no HTTP\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        data = everything(client)
    assert data.count(b"HTTP/1.1 ") == 2
    assert b" 400 " in data.partition(b"/first")[2]


@pytest.mark.parametrize(
    "begun",
    [
        b"PUT / HTTP/1.1\r\nHost: a\r\n",
        request("/", b"half of it")[:-5],
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhal",
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"",
    ],
    ids=["head", "body", "chunk", "chunks", "nothing"],
)
def test_a_request_that_will_never_be_whole_is_given_up_at_once(begun):
    told = Told(waits=False)
    with running(told, header_seconds=1e6, body_seconds=1e6) as server, server.connect() as client:
        client.sendall(begun)
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert everything(client) == b""
    assert told.asked == []


def test_a_stream_ends_as_a_whole_for_who_has_said_that_it_sends_no_more(tmp_path):
    with place_on("sqlite", tmp_path) as place, place.server.connect() as client:
        head = (
            "GET /treeclaim/changes HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n"
            "X-Auth-Token: admin\r\nOpenStack-API-Version: placement 1.39, treeclaim 1.1\r\n\r\n"
        )
        client.sendall(head.encode())
        begun = client.recv(1 << 16)
        assert b" 200 " in begun.partition(b"\r\n")[0]
        client.shutdown(socket.SHUT_WR)
        whole = begun + everything(client)
    assert whole.endswith(b"0\r\n\r\n")
