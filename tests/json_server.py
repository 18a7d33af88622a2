# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on loopback that responds in JSON, for services that tests stand in for."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
        query: The last value of each parameter.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: Message
    body: bytes


@contextmanager
def json_server(respond):
    """Serve until the block ends; yields the URL.

    Args:
        respond: Returns status and document of the response to a `Request`, and headers if it has some.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = urlsplit(self.path)
            query = dict(parse_qsl(url.query))
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, document, *headers = respond(
                Request(self.command, url.path, query, self.headers, body)
            )
            content = json.dumps(document).encode()
            described = {"Content-Type": "application/json", "Content-Length": str(len(content))}
            self.send_response(status)
            for name, value in (described | dict(*headers)).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_arguments):
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
