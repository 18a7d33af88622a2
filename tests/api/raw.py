# SPDX-License-Identifier: Apache-2.0
"""Requests as a WSGI server hands them over: bytes in paths and queries as they are."""

import io
import json
from dataclasses import dataclass
from wsgiref.util import setup_testing_defaults

from tests.conformance.promises import OPENINGS


@dataclass(frozen=True)
class Answer:
    """The answer.

    Attributes:
        status: HTTP status.
        headers: Names in lower case, and values.
        body: Bytes.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name):
        """Return the value of a header, None if it was not sent."""
        return dict(self.headers).get(name)

    def json(self):
        """Return the document; fails where it is no JSON by the letter of RFC 8259."""
        return json.loads(self.body.decode("utf-8"), parse_constant=_no_constant)

    @property
    def detail(self):
        """The text of an error."""
        return self.json()["errors"][0]["detail"]


def _no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def send(application, method, path, *, query=b"", body=None, version="1.39", **headers):
    """Send a request with full rights.

    Args:
        path: Decoded path, as text or bytes.
        query: Bytes as on the wire.
        body: Bytes, or a stream with a length in the headers.
        headers: By WSGI name in lower case; None removes a default header.
    """
    raw = path if isinstance(path, bytes) else path.encode("utf-8", "surrogatepass")
    environment = {
        "REQUEST_METHOD": method,
        "PATH_INFO": raw.decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "wsgi.input": body if isinstance(body, io.RawIOBase) else io.BytesIO(body or b""),
        "HTTP_X_AUTH_TOKEN": "admin",
        "HTTP_X_ROLES": "admin,service",
        "HTTP_OPENSTACK_API_VERSION": f"placement {version}",
        "HTTP_ACCEPT": "application/json",
    }
    if body is not None:
        environment["CONTENT_TYPE"] = "application/json"
    if isinstance(body, bytes):
        environment["CONTENT_LENGTH"] = str(len(body))
    environment |= {name.upper(): value for name, value in headers.items()}
    environment = {name: value for name, value in environment.items() if value is not None}
    setup_testing_defaults(environment)
    begun = []

    def start(status, header_pairs, _error=None):
        begun.append((int(status[:3]), [(name.lower(), value) for name, value in header_pairs]))

    pieces = application(environment, start)
    try:
        written = b"".join(pieces)
    finally:
        if hasattr(pieces, "close"):
            pieces.close()
    return Answer(*begun[-1], written)


def require_sound(answer):
    """Fail if an answer could harm its reader: 500, split headers, broken JSON."""
    assert answer.status < 500, answer.body[:500]
    for name, value in answer.headers:
        assert all(" " <= character <= "~" for character in name + value), (name, value)
    if answer.header("content-type") == "application/json":
        document = answer.json()
        if answer.status in OPENINGS:
            # Contract page 00, section 6.
            detail = document["errors"][0]["detail"]
            remainder = detail.removeprefix(OPENINGS[answer.status])
            assert remainder != detail, detail
            assert not remainder or remainder.startswith("\n\n "), detail
    if answer.status >= 400:
        assert len(answer.body) < 50_000, "an error repeats all that was sent"
