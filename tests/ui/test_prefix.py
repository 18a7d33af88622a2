# SPDX-License-Identifier: Apache-2.0
"""The pages behind a proxy that serves the service below a path (contract page 99, section 7)."""

import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.ui.changes import claimed, uuid_of
from tests.ui.worlds import QUESTION
from treeclaim.client import Client

pytestmark = pytest.mark.long

PREFIX = "/cloud-1/placement"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host"}
_SECONDS = 60


@contextmanager
def proxy_before(target):
    """A proxy that knows nothing but paths below the prefix, which it takes off.

    Yields:
        Its URL with the prefix, and the paths of requests that it does not know.
    """
    unknown = []

    class Handler(BaseHTTPRequestHandler):
        def pass_on(self):
            if not self.path.startswith(f"{PREFIX}/"):
                unknown.append(self.path)
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            connection = HTTPConnection(target.removeprefix("http://"), timeout=_SECONDS)
            connection.request(
                self.command, self.path.removeprefix(PREFIX), body, kept(self.headers.items())
            )
            answer = connection.getresponse()
            self.send_response_only(answer.status, answer.reason)
            for name, value in kept(answer.getheaders()).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                # A stream is passed on as it comes; HTTP/1.0 ends an answer with its connection.
                while piece := answer.read1(65_536):
                    self.wfile.write(piece)
            except OSError:
                # The browser left the page, or the service ended before the stream.
                self.close_connection = True
            finally:
                connection.close()

        def do_GET(self):
            self.pass_on()

        def do_POST(self):
            self.pass_on()

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{PREFIX}", unknown
    finally:
        server.shutdown()
        thread.join()
        server.socket.close()


def kept(headers):
    return {name: value for name, value in headers if name.lower() not in HOP_BY_HOP}


def test_pages_and_event_stream_work_below_a_path(visit, cloud):
    with proxy_before(cloud) as (url, unknown), Client(cloud, "admin") as client:
        visitor = visit(url)
        page = visitor.open(token=None)
        # The address without its last slash leads to the pages too.
        page.goto(f"{url}/ui")
        assert page.url == f"{url}/ui/"
        page.get_by_label("Token").fill("admin")
        page.keyboard.press("Enter")
        visitor.see("11 trees and 1 pool")
        visitor.see("live: changes come as they are made")
        with claimed(client, {uuid_of(client, "host-6_numa1_device"): {"VGPU": 3}}):
            visitor.see("3 of 40 used")
        page.get_by_role("button", name="Table").click()
        page.get_by_role("link", name="host-2", exact=True).click()
        page.get_by_role("heading", name="host-2", level=1).wait_for()
        page.locator("table.holdings tbody th a").first.click()
        page.get_by_role("heading", name="Consumers").wait_for()
        page.locator("table.holdings tbody tr").first.wait_for()
        page.get_by_role("link", name="Audit").click()
        page.locator(".findings").wait_for()
        page.get_by_role("link", name="Fit").click()
        page.get_by_role("button", name="Count").click()
        page.locator(".fit tbody tr").first.wait_for()
        page = visitor.open(f"#/ask?{QUESTION}")
        page.locator(".candidate .bar").first.wait_for()
        page.get_by_role("button", name="curl").click()
        assert f"{url}/allocation_candidates?" in page.get_by_label("curl").inner_text()
        page.get_by_role("button", name="Why not more trees?").click()
        page.locator(".verdict").wait_for()
        page.get_by_role("link", name="Treeclaim").click()
        visitor.see("11 trees and 1 pool")
        assert page.url.startswith(f"{url}/ui/")
    # Where somebody opens a picture alone, browsers ask for that by themselves.
    assert set(unknown) <= {"/favicon.ico"}
