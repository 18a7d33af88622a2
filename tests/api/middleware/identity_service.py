# SPDX-License-Identifier: Apache-2.0
"""An identity service that validates tokens as slowly as a test wants.

It implements the documented part of Keystone's API: the version document, a token for a password, and the validation of
a token. It records the order of validations, and delays them while it is held.
"""

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from tests.json_server import json_server

GOOD = "good"
"""How tokens begin that are valid."""

_AT_MOST = 60
"""Seconds after which a test that has failed is over."""


class IdentityService:
    """The service on a free port.

    Attributes:
        url: URL of its API, version 3.
        asked: The validated tokens, in order of arrival.
        release: Answers all waiting and later validations.
    """

    def __init__(self):
        self.url = ""
        self.asked = []
        self._goes_on = threading.Event()
        self.release = self._goes_on.set
        self.release()

    def hold(self):
        """Answer no look-up from now on."""
        self._goes_on.clear()

    def respond(self, request):
        """Return the response to a request; a look-up waits while the service is held."""
        if request.method == "POST":
            return 201, {"token": self._token()}, {"X-Subject-Token": "of-the-service"}
        if not request.path.startswith("/v3/auth/tokens"):
            link = {"rel": "self", "href": self.url}
            version = {"id": "v3.14", "status": "stable", "links": [link], "media-types": []}
            return 200, {"version": version}
        token = request.headers["x-subject-token"]
        self.asked.append(token)
        self._goes_on.wait(_AT_MOST)
        if token.startswith(GOOD):
            return 200, {"token": self._token()}
        return 404, {"error": {"code": 404, "title": "Not Found"}}

    def options(self):
        """Options of a Treeclaim that uses it, for `tests.service`."""
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

    def _token(self):
        now = datetime.now(UTC)
        domain = {"id": "default", "name": "Default"}
        endpoints = [
            {"id": name, "interface": name, "region": "one", "region_id": "one", "url": self.url}
            for name in ("public", "internal", "admin")
        ]
        return {
            "methods": ["password"],
            "user": {"id": "u1", "name": "admin", "domain": domain},
            "project": {"id": "p1", "name": "admin", "domain": domain},
            "roles": [{"id": "r1", "name": "admin"}],
            "issued_at": now.isoformat(),
            "expires_at": (now + timedelta(hours=1)).isoformat(),
            "catalog": [
                {"type": "identity", "name": "keystone", "id": "i", "endpoints": endpoints}
            ],
        }


@contextmanager
def identity_service():
    """Run the service for the duration of a block."""
    service = IdentityService()
    with json_server(service.respond) as url:
        service.url = f"{url}/v3"
        try:
            yield service
        finally:
            service.release()
