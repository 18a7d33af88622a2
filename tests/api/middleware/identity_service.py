# SPDX-License-Identifier: Apache-2.0
"""An identity service that answers what token validation asks, as slowly as a test wants.

It speaks the part of Keystone's API that is documented for this: the version document, a password
for a token, and the look-up of a token. It says in what order look-ups came, and keeps them waiting
while it is held.
"""

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD = "good"
"""How tokens begin that are valid."""

_AT_MOST = 60
"""Seconds after which a test that has failed is over."""


class IdentityService:
    """The service, at a port of its own.

    Attributes:
        url: URL of its API, version 3.
        asked: The tokens that were looked up, in order of arrival.
    """

    def __init__(self):
        self.asked = []
        self._goes_on = threading.Event()
        self._goes_on.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def hold(self):
        """Answer no look-up from now on."""
        self._goes_on.clear()

    def release(self):
        """Answer all that wait, and those that come."""
        self._goes_on.set()

    def stop(self):
        """Let go whoever waits, and listen no more."""
        self.release()
        self._server.shutdown()
        self._server.server_close()

    def await_turn(self, token):
        """Note a look-up, and wait while the service is held."""
        self.asked.append(token)
        self._goes_on.wait(_AT_MOST)

    def options(self):
        """Options of a Treeclaim that asks it, as `tests.service` takes them."""
        return {
            "api.auth_strategy": "keystone",
            "keystone_authtoken.www_authenticate_uri": self.url,
            "keystone_authtoken.auth_url": self.url,
            "keystone_authtoken.auth_type": "password",
            "keystone_authtoken.username": "placement",
            "keystone_authtoken.password": "secret",
            "keystone_authtoken.project_name": "service",
            "keystone_authtoken.user_domain_name": "Default",
            "keystone_authtoken.project_domain_name": "Default",
        }


@contextmanager
def identity_service():
    """Run the service for the duration of a block."""
    service = IdentityService()
    try:
        yield service
    finally:
        service.stop()


def _handler_of(service):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path.startswith("/v3/auth/tokens"):
                token = self.headers["x-subject-token"]
                service.await_turn(token)
                if token.startswith(GOOD):
                    self._answer(200, {"token": _token(service)})
                else:
                    self._answer(404, {"error": {"code": 404, "title": "Not Found"}})
            else:
                link = {"rel": "self", "href": service.url}
                version = {"id": "v3.14", "status": "stable", "links": [link], "media-types": []}
                self._answer(200, {"version": version})

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self._answer(201, {"token": _token(service)}, {"X-Subject-Token": "of-the-service"})

        def _answer(self, status, document, headers=None):
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments):
            pass

    return Handler


def _token(service):
    now = datetime.now(UTC)
    domain = {"id": "default", "name": "Default"}
    endpoints = [
        {"id": name, "interface": name, "region": "one", "region_id": "one", "url": service.url}
        for name in ("public", "internal", "admin")
    ]
    return {
        "methods": ["password"],
        "user": {"id": "u1", "name": "admin", "domain": domain},
        "project": {"id": "p1", "name": "admin", "domain": domain},
        "roles": [{"id": "r1", "name": "admin"}],
        "issued_at": now.isoformat(),
        "expires_at": (now + timedelta(hours=1)).isoformat(),
        "catalog": [{"type": "identity", "name": "keystone", "id": "i", "endpoints": endpoints}],
    }
