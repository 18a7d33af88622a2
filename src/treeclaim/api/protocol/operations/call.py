# SPDX-License-Identifier: Apache-2.0
"""A request on its way into a handler, what it finds there, and a successful answer on its way out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple, cast

import falcon
from oslo_config import cfg

from treeclaim.api.admission import Admission
from treeclaim.api.protocol.callers import Identity
from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.negotiation import JSON
from treeclaim.api.protocol.policy import Policy
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.protocol.request.schemas import Schema
from treeclaim.api.protocol.request.validation import (
    Checker,
    parsed_json,
    query_pairs,
    require_body,
)
from treeclaim.api.protocol.texts import address_of, http_date, json_bytes
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.request import SearchOptions
from treeclaim.model.timing import Deadline
from treeclaim.replica import Batches, Replica
from treeclaim.store import Store
from treeclaim.watching import Hub

CLIENT_GONE_KEY = "treeclaim.client_gone"
"""Key of a function in the WSGI environment that returns whether the client has
closed its connection."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running service.

    Attributes:
        store: The database.
        replica: This worker's in-memory copy of it.
        batches: Places single consumers, those together that come at the same time.
        hub: Tells watchers what changes in it.
        policy: Who may do what.
        search: The operator's options for searches.
        options: The operator's options of the group `treeclaim`, among them the limits of one request.
        claim_attempts: How often consumers are placed again because others were there first.
        admission: Limits of requests at once.
        incomplete_project_id, incomplete_user_id: Owners of claims made below 1.8.
        description: Returns the OpenAPI document.
    """

    store: Store
    replica: Replica
    batches: Batches
    hub: Hub
    policy: Policy
    search: SearchOptions
    options: cfg.ConfigOpts.GroupAttr
    claim_attempts: int
    admission: Admission
    incomplete_project_id: str
    incomplete_user_id: str
    description: Callable[[], bytes]


class VersionedSchema:
    """A schema for each microversion, made when first asked for, and kept; or one for all of them.

    There are as many as microversions, each with the extension and without.
    """

    def __init__(self, make: Schema | Callable[[Version], Schema]) -> None:
        self._make = make
        self._made: dict[Version, Checker] = {}

    def at(self, version: Version) -> Checker:
        """Return the checker for a version."""
        if version not in self._made:
            schema = self._make(version) if callable(self._make) else self._make
            self._made[version] = Checker(schema)
        return self._made[version]


class Call(NamedTuple):
    """A request, past authentication and negotiation.

    Attributes:
        request: The HTTP request.
        version: The negotiated microversion.
        identity: Who calls.
        services: What handlers work with.
        arguments: The variables of the path.
        body: Schema of the operation's JSON body; None where a body is ignored.
        most_values: How many values that body may have.
        deadline: When the work for it ends; a search and a transaction have their own.
        client_gone: Tells whether the client has hung up; None if that is unknown.
    """

    request: falcon.Request
    version: Version
    identity: Identity
    services: Services
    arguments: Mapping[str, str]
    body: VersionedSchema | BodyReader | None
    most_values: int
    deadline: Deadline
    client_gone: Callable[[], bool] | None

    def has(self, feature: Feature) -> bool:
        """Tell whether a feature is there at the request's version."""
        return self.version.has(feature)

    def link(self, path: str) -> str:
        """Return a path with the mount prefix, as links in bodies have it."""
        return f"{self.request.root_path}{path}"

    def json(self) -> Any:
        """Read and parse the body, and check it by the schema for this version, or read it into its model.

        Raises:
            ApiError: 400, or 413 for a body that is too long; it is not read then.
            RequestGivenUpError: if the deadline has passed.
        """
        longest = self.services.options.max_body_bytes
        if (self.request.content_length or 0) > longest:
            raise ApiError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is longer than {longest} bytes ([treeclaim]/max_body_bytes).",
            )
        body = self.request.bounded_stream.read()
        parsed = parsed_json(body, self.most_values, self.deadline.check)
        self.deadline.check()
        if isinstance(self.body, BodyReader):
            parsed = self.body.read(parsed)
        elif self.body is not None:
            require_body(self.body.at(self.version), parsed, len(body))
        self.deadline.check()
        return parsed

    def is_allowed(self, rule: str, target: Mapping[str, str | None] | None = None) -> bool:
        """Return whether a rule of the policy allows the caller to act on a target, by default the caller's own."""
        if target is None:
            target = {"project_id": self.identity.project_id, "user_id": self.identity.user_id}
        return self.services.policy.allows(rule, self.identity, target)

    def require_allowed(self, rule: str, target: Mapping[str, str | None] | None = None) -> None:
        """Check a rule of the policy; see `is_allowed`.

        Raises:
            ApiError: 403.
        """
        if not self.is_allowed(rule, target):
            raise ApiError(HTTPStatus.FORBIDDEN, f"Policy does not allow {rule} to be performed.")

    def query(self) -> list[tuple[str, str]]:
        """Return the names and values of the query string, in order.

        Raises:
            ApiError: 400 if they are not UTF-8.
        """
        return query_pairs(self.request.query_string)


PIECES_KEY = "treeclaim.takes_pieces"
"""Key in the WSGI environment of a server that accepts memoryviews, and sends a list as it
is. Others may want bytes, and send each piece by itself."""


class Reply(NamedTuple):
    """A successful answer.

    Attributes:
        status: HTTP status.
        body: A dictionary, which is written as JSON; or ready-made pieces, of which a list is the whole answer
            and anything else is streamed; None for no body.
        location: Path of what was created, without the mount prefix.
        modified_at: For Last-Modified from 1.15: seconds since the epoch; None for no cache
            headers.
        content_type: The content type of the body.
    """

    status: HTTPStatus = HTTPStatus.OK
    body: dict[str, Any] | Iterable[bytes | memoryview] | None = None
    location: str | None = None
    modified_at: float | None = None
    content_type: str = JSON


def write_reply(reply: Reply, call: Call, response: falcon.Response) -> None:
    """Put a reply into the HTTP response."""
    response.status = reply.status
    if reply.location is not None:
        response.set_header("Location", address_of(f"{call.request.prefix}{reply.location}"))
    if reply.modified_at is not None and call.version.has(Feature.CACHE_HEADERS):
        response.set_header("Last-Modified", http_date(reply.modified_at))
        response.set_header("Cache-Control", "no-cache")
    if reply.body is None:
        response.text = None
        response.content_type = None
        return
    response.content_type = reply.content_type
    pieces = reply.body
    if isinstance(pieces, dict):
        response.data = json_bytes(pieces)
    elif not isinstance(pieces, list):
        response.stream = cast("Any", pieces)
    elif len(pieces) > 1 and call.request.env.get(PIECES_KEY):
        response.set_stream(cast("Any", pieces), sum(map(len, pieces)))
    else:
        response.data = b"".join(pieces)
