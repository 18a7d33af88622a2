# SPDX-License-Identifier: Apache-2.0
"""A shadow answers with what Placement answers, and tells what Treeclaim would have answered."""

import gzip
import json
import socket
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import httpx
import pytest

from tests.cli.services import served
from tests.paths import ROOT
from tests.servers import eventually
from treeclaim.shadow.comparison import Exchange
from treeclaim.shadow.known_differences import KNOWN
from treeclaim.shadow.messages import Request, Response
from treeclaim.shadow.observer import Observed, Observer
from treeclaim.shadow.proxy import proxy
from treeclaim.shadow.report import Report, Verdict

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


@contextmanager
def shadow(upstream, ours):
    """A shadow between two services; yields its URL, its report and its observer."""
    report = Report()
    observer = Observer(ours, upstream, report)
    with proxy("127.0.0.1", 0, upstream, observer, report) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", report, observer
        finally:
            server.shutdown()
            thread.join()
            handler: Any = server.RequestHandlerClass
            handler.upstream.close()


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """Two services with a database of their own each."""
    with (
        served(tmp_path_factory.mktemp("theirs")) as theirs,
        served(tmp_path_factory.mktemp("ours")) as ours,
    ):
        yield theirs["TREECLAIM_ENDPOINT"], ours["TREECLAIM_ENDPOINT"]


def test_what_is_equal_is_counted_and_what_differs_is_told(services):
    theirs, ours = services
    with shadow(theirs, ours) as (url, report, observer), httpx.Client(headers=HEADERS) as http:
        provider = {"name": "host", "uuid": "11111111-0000-4000-8000-000000000001"}
        assert http.post(f"{url}/resource_providers", json=provider).status_code == 200
        listed = http.get(f"{url}/resource_providers").json()["resource_providers"]
        assert [entry["name"] for entry in listed] == ["host"]
        assert http.get(f"{url}/traits?name=startswith:COMPUTE").status_code == 200
        eventually(lambda: report.verdicts.total() == 2, "both are compared")
        observer.close()
        assert report.verdicts == {Verdict.EQUAL: 1, Verdict.DIFFERENT: 1}
        (found,) = report.document()["different"]
        assert "/resource_providers" in found["example"]
        assert any("1 times different" in line for line in report.lines())
        # Writes go to Placement alone.
        assert httpx.get(f"{ours}/resource_providers", headers=HEADERS).json() == {
            "resource_providers": []
        }


class Odd(BaseHTTPRequestHandler):
    """Answers as no service of ours does; what it got is noted."""

    protocol_version = "HTTP/1.1"
    got: ClassVar[list] = []

    def do_GET(self):
        self.got.append((self.path, dict(self.headers.items())))
        if self.path.startswith("/compressed"):
            self._say(gzip.compress(b"{}", mtime=0), "Content-Encoding", "gzip")
        elif self.path.startswith("/pieces"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("X-Odd", "Value")
            self.end_headers()
            self.wfile.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        else:
            self._say(b"plain", "X-Odd", "Value")

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._say(body.upper(), "X-Odd", "Value")

    def _say(self, body, name, value):
        self.send_response(200)
        self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def odd():
    """Where an odd service listens."""
    Odd.got.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/a%2Fb/%7e?x=%20&&y", "//double", "/plain?q=a+b"])
def test_a_request_goes_on_as_it_was_written(odd, path):
    with shadow(odd, "http://127.0.0.1:1") as (url, _, observer):
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(
                f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Mine: Value\r\nConnection: close\r\n\r\n".encode()
            )
            said = connection.makefile("rb").read()
        observer.close()
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert said.endswith(b"plain")
    assert b"\r\nX-Odd: Value\r\n" in said
    assert Odd.got[0][0] == path.replace("//", "/")
    assert Odd.got[0][1]["X-Mine"] == "Value"
    assert "User-Agent" not in {name.title() for name in Odd.got[0][1]}


@pytest.mark.parametrize(
    ("path", "body"), [("/pieces", b"abcde"), ("/compressed", gzip.compress(b"{}", mtime=0))]
)
def test_an_answer_comes_as_it_was_said(odd, path, body):
    with (
        shadow(odd, "http://127.0.0.1:1") as (url, report, observer),
        httpx.stream("GET", url + path) as answer,
    ):
        assert b"".join(answer.iter_raw()) == body
        # A client may have its answer before the shadow looks at it.
        eventually(lambda: report.not_compared, "it is counted")
        observer.close()


def test_a_body_in_chunks_is_passed_on(odd):
    with shadow(odd, odd) as (url, _, observer):
        answer = httpx.put(f"{url}/x", content=iter([b"abc", b"de"]))
        observer.close()
    assert answer.text == "ABCDE"


def test_a_treeclaim_that_is_away_changes_no_answer(odd):
    with shadow(odd, "http://127.0.0.1:1") as (url, report, observer):
        assert httpx.get(f"{url}/plain").text == "plain"
        eventually(lambda: report.not_compared.total() == 1, "it is counted")
        observer.close()


def test_a_placement_that_is_away_is_said_so(odd):
    with shadow("http://127.0.0.1:1", odd) as (url, _, observer):
        assert httpx.get(f"{url}/plain").status_code == 502
        observer.close()


def test_what_differs_only_while_somebody_writes_is_no_difference(odd, monkeypatch):
    report = Report()
    old = Response(200, {"content-type": "application/json"}, "", {"traits": ["OLD"]})
    new = Response(200, {"content-type": "application/json"}, "", {"traits": ["NEW"]})
    with closing(Observer(odd, odd, report)) as observer:
        monkeypatch.setattr("treeclaim.shadow.observer._asked", lambda *_: new)
        observer._compare(Observed(Request("GET", "/traits"), {}, old, 0.0))
    assert report.verdicts == {Verdict.UNSETTLED: 1}


def test_a_known_difference_is_told_by_the_number_of_its_row():
    rows = (ROOT / "docs" / "differences.md").read_text()
    for known in KNOWN:
        assert f"\n| {known.number} | " in rows
    report = Report()
    report.judged(10, Exchange(Request("GET", "/"), *(Response(200, {}, "", None),) * 2))
    assert any("known difference 10" in line for line in report.lines())
    assert json.dumps(report.document())
