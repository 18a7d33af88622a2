# SPDX-License-Identifier: Apache-2.0
"""Requests that are answered before their bodies, which arrive late and in pieces.

Contract page 00, section 4: the connection remains usable unless the answer closes it.
"""

import re
import time
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection

from tests.server.fronts import Answer
from treeclaim.api.routes import OPERATIONS

LATE = 0.005
"""Seconds between headers and body."""

_PIECES = 3
_PAUSE = 0.001
_UUID = "6f5a2c54-3c06-4a5b-a1b2-7e0ce0b8d601"
_ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Case:
    """A request with the expected status; None for any."""

    method: str
    path: str
    headers: dict = field(default_factory=dict)
    body: bytes = b"{}"
    status: int | None = None


def _filled(path):
    return re.sub(r"\{\w+\}", _UUID, path)


def _operations():
    """Yield a short and a long body for each operation, even if it needs none."""
    extension = {"OpenStack-API-Version": "treeclaim 1.0"}
    for operation in OPERATIONS:
        version = extension if operation.needs_opt_in else {}
        headers = _ADMIN | _JSON | version
        path = _filled(operation.path).replace("traits/" + _UUID, "traits/CUSTOM_LATE")
        path = path.replace("resource_classes/" + _UUID, "resource_classes/CUSTOM_LATE")
        yield Case(operation.method, path, headers)
        yield Case(operation.method, path, headers, b" " * 100_000)


def _refusals():
    path = f"/resource_providers/{_UUID}/inventories"
    nobody = _ADMIN | {"X-Auth-Token": "somebody"}
    old = _ADMIN | {"OpenStack-API-Version": "placement 7.0"}
    for body in (b"{}", b"x" * 100_000):
        yield Case("PUT", path, _JSON, body, 401)
        yield Case("PUT", path, nobody | _JSON, body, 403)
        yield Case("PUT", "/nowhere/at/all", _ADMIN | _JSON, body, 404)
        yield Case("POST", path + "/VCPU", _ADMIN | _JSON, body, 405)
        yield Case("PUT", path, old | _JSON, body, 406)
        yield Case("PUT", path, _ADMIN | {"Content-Type": "text/plain"}, body, 415)
        yield Case("POST", "/resource_providers", _ADMIN | _JSON, body[:-1] + b"]", 400)
        yield Case("PUT", path, _ADMIN, body, 400)
        yield Case("GET", "/", _JSON, body, 200)


CASES = (*_operations(), *_refusals())


class KeptConnection(HTTPConnection):
    """A connection that may be closed only if the previous answer announced it; the next request opens another one.

    Attributes:
        opened: Number of connections so far.
    """

    def __init__(self, address, prefix=""):
        super().__init__(address[0], address[1], timeout=60)
        self.opened = 0
        self._prefix = prefix

    def connect(self):
        super().connect()
        self.opened += 1

    def ask(self, case):
        """Send a request with a late body in pieces; return the answer."""
        headers = case.headers | {"Content-Length": len(case.body)}
        self.request(case.method, self._prefix + case.path, headers=headers)
        time.sleep(LATE)
        size = -(-len(case.body) // _PIECES)
        for begin in range(0, len(case.body), size):
            self.send(case.body[begin : begin + size])
            time.sleep(_PAUSE)
        answer = self.getresponse()
        says_close = answer.will_close
        return Answer(answer.status, answer.headers, answer.read(), True, says_close)


def judge(address, prefix="", *, keeps):
    """Send all cases to a server, and check the answers; `keeps` says whether the server has persistent connections."""
    with closing(KeptConnection(address, prefix)) as connection:
        for case in CASES:
            answer = connection.ask(case)
            assert case.status in {None, answer.status}, (case.method, case.path, answer.status)
            assert answer.status < 500, (case, answer.body)
        if keeps:
            assert connection.opened == 1
