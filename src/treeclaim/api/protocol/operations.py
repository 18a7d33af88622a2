# SPDX-License-Identifier: Apache-2.0
"""Operations as data: what a method of a path needs, and what it answers.

The pipeline (`app`) and the API description (`openapi`) are made from these declarations.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import falcon
import orjson

from treeclaim.api.admission import Kind
from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.identity import Identity
from treeclaim.api.protocol.microversions import Feature, Version
from treeclaim.api.protocol.services import Services
from treeclaim.api.protocol.texts import address_of
from treeclaim.api.protocol.timestamps import http_date
from treeclaim.api.protocol.validation import (
    Checker,
    parsed_json,
    query_pairs,
    require_body,
)
from treeclaim.api.protocol.wording import Schema

JSON = "application/json"

CLIENT_GONE_KEY = "treeclaim.client_gone"
"""Where a server leaves, in the WSGI environment, a function that tells whether the client has
closed its connection."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer.

    Attributes:
        status: HTTP status.
        body: Something `orjson` can write, ready-made bytes in pieces, or None for no body.
        location: Path of what was created, without the mount prefix.
        modified_at: For Last-Modified from 1.15: seconds since the epoch; None for no cache
            headers.
        is_ready_made: True where the body is an iterable of bytes.
    """

    status: HTTPStatus = HTTPStatus.OK
    body: Any = None
    location: str | None = None
    modified_at: float | None = None
    is_ready_made: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One request, past authentication and negotiation.

    Attributes:
        request: The HTTP request.
        version: The negotiated microversion.
        identity: Who calls.
        services: What handlers work with.
        arguments: The variables of the path.
        operation: What is called.
    """

    request: falcon.Request
    version: Version
    identity: Identity
    services: Services
    arguments: Mapping[str, str]
    operation: "Operation"

    def has(self, feature: Feature) -> bool:
        """Tell whether a feature is there at the request's version."""
        return self.version.has(feature)

    def link(self, path: str) -> str:
        """Return a path with the mount prefix, as links in bodies have it."""
        return f"{self.request.root_path}{path}"

    def json(self) -> Any:
        """Read, parse and check the body by the operation's schema for this version.

        Raises:
            ApiError: 400, or 413 for a body that is too long; it is not read then.
        """
        longest = self.services.limits.body_bytes
        if (self.request.content_length or 0) > longest:
            raise ApiError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is longer than {longest} bytes ([treeclaim]/max_body_bytes).",
            )
        body = self.request.bounded_stream.read()
        parsed = parsed_json(body)
        if self.operation.body is not None:
            require_body(self.operation.body.at(self.version), parsed, len(body))
        return parsed

    def require_allowed(self, rule: str) -> None:
        """Check one more rule of the policy, where what is asked for needs it.

        Raises:
            ApiError: 403.
        """
        target = {"project_id": self.identity.project_id, "user_id": self.identity.user_id}
        if not self.services.policy.allows(rule, self.identity, target):
            raise ApiError(HTTPStatus.FORBIDDEN, f"Policy does not allow {rule} to be performed.")

    def query(self) -> list[tuple[str, str]]:
        """Return the names and values of the query string, in order.

        Raises:
            ApiError: 400 if they are not UTF-8.
        """
        return query_pairs(self.request.query_string)


class Versioned:
    """A schema for each microversion, made when first asked for, and kept."""

    def __init__(self, make: Callable[[Version], Schema]) -> None:
        self._make = make
        self._made: dict[Version, Checker] = {}

    def at(self, version: Version) -> Checker:
        """Return the checker for a version."""
        if version not in self._made:
            self._made[version] = Checker(self._make(version))
        return self._made[version]


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path.

    Attributes:
        method: HTTP method.
        path: With variables in braces.
        handler: What does it.
        policy: Name of the rule that allows it; None for everybody.
        summary: One line for the API description.
        since: Minor version from which it exists.
        body: Schema of the JSON body; None where a body is ignored.
        query: Schema of the query string; None where it is ignored.
        body_until: Minor version up to which a body is read; later it is ignored.
        gate_first: True where "does not exist at this version" is judged before media types.
        missing: Status below `since`.
        checks_accept: True where the Accept header must admit JSON.
        extension: Minor version of the `treeclaim` extension from which it exists; None for what
            is no part of it (page 97, section 1).
    """

    method: str
    path: str
    handler: Callable[[Call], Reply]
    policy: str | None
    summary: str
    since: int = 0
    body: Versioned | None = None
    query: Versioned | None = None
    body_until: int | None = None
    gate_first: bool = False
    missing: HTTPStatus = HTTPStatus.NOT_FOUND
    checks_accept: bool = False
    extension: int | None = None

    @property
    def kind(self) -> Kind:
        """Return what the operation waits for. What needs no rule touches neither inventory."""
        if self.method != "GET":
            return Kind.WRITE
        return Kind.FREE if self.policy is None else Kind.READ

    def needs_json(self, version: Version) -> bool:
        """Tell whether the operation reads a JSON body at a version."""
        return self.body is not None and (
            self.body_until is None or version.minor <= self.body_until
        )

    def exists_at(self, version: Version) -> bool:
        """Tell whether the operation exists at a version."""
        if self.extension is not None and not version.has_extension(self.extension):
            return False
        return version.minor >= self.since


def client_gone_of(call: Call) -> Callable[[], bool] | None:
    """Return what tells whether the client has hung up; None where the server cannot."""
    gone: Callable[[], bool] | None = call.request.env.get(CLIENT_GONE_KEY)
    return gone


def written_json(body: Any) -> bytes:
    """Write a body as JSON, with integers of any length."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        # It refuses more than 64 bits, which only explanations of impossible amounts have.
        return json.dumps(body, separators=(",", ":")).encode("ascii")


def write_reply(reply: Reply, call: Call, response: falcon.Response) -> None:
    """Put a reply into the HTTP response."""
    response.status = reply.status
    if reply.location is not None:
        response.set_header("Location", address_of(f"{call.request.prefix}{reply.location}"))
    if reply.modified_at is not None and call.has(Feature.CACHE_HEADERS):
        response.set_header("Last-Modified", http_date(reply.modified_at))
        response.set_header("Cache-Control", "no-cache")
    if reply.body is None:
        response.text = None
        response.content_type = None
        return
    response.content_type = JSON
    if not reply.is_ready_made:
        response.data = written_json(reply.body)
    elif isinstance(reply.body, list) and len(reply.body) == 1:
        response.data = reply.body[0]
    else:
        response.stream = reply.body
