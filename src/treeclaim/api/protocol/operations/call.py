# SPDX-License-Identifier: Apache-2.0
"""The argument, the services and the successful reply of a handler."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

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
    parse_json,
    parse_query_string,
    require_body,
)
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.request import SearchOptions
from treeclaim.model.timing import Deadline
from treeclaim.replica import Batches, Replica
from treeclaim.store import Store
from treeclaim.watching import Hub

CLIENT_GONE_KEY = "treeclaim.client_gone"
"""Key of a function in the WSGI environment that returns whether the client has closed its connection."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running service.

    Attributes:
        replica: This worker's in-memory copy of the database.
        batches: Places single consumers; concurrent requests are placed together.
        hub: Notifies watchers of changes.
        options: The options of the group `treeclaim`, including the limits of a request.
        claim_attempts: Most attempts to place consumers while other writers interfere.
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
    """A schema for each microversion, compiled at its first use, or one schema for all."""

    def __init__(self, make: Schema | Callable[[Version], Schema]) -> None:
        self._make = make
        self._checkers: dict[Version, Checker] = {}

    def at(self, version: Version) -> Checker:
        """Return the checker of a version."""
        if version not in self._checkers:
            schema = self._make(version) if callable(self._make) else self._make
            self._checkers[version] = Checker(schema)
        return self._checkers[version]


class Call(NamedTuple):
    """A request after authentication and negotiation.

    Attributes:
        arguments: The variables of the path.
        body: Schema, or model, of the JSON body; None if a body is ignored.
        most_values: Most values of the body.
        deadline: Deadline of the handler; searches and transactions have separate deadlines.
        client_gone: Returns whether the client has closed the connection; None if the server does not detect this.
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
        """Return whether the negotiated version has a feature."""
        return self.version.has(feature)

    def link(self, path: str) -> str:
        """Return a path with the mount prefix, for links in bodies."""
        return f"{self.request.root_path}{path}"

    def read_body(self) -> Any:
        """Read, parse and validate the body.

        Raises:
            ApiError: 400, or 413 for a body that is too long, which is not read.
            RequestGivenUpError: if the deadline has passed.
        """
        longest = self.services.options.max_body_bytes
        if (self.request.content_length or 0) > longest:
            raise ApiError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is longer than {longest} bytes ([treeclaim]/max_body_bytes).",
            )
        body = self.request.bounded_stream.read()
        document = parse_json(body, self.most_values, self.deadline.check)
        self.deadline.check()
        if isinstance(self.body, BodyReader):
            document = self.body.read(document)
        elif self.body is not None:
            require_body(self.body.at(self.version), document, len(body))
        self.deadline.check()
        return document

    def is_allowed(self, rule: str, target: Mapping[str, str | None] | None = None) -> bool:
        """Return whether a policy rule allows the caller to act on a target, by default their project and user."""
        if target is None:
            target = {"project_id": self.identity.project_id, "user_id": self.identity.user_id}
        return self.services.policy.allows(rule, self.identity, target)

    def require_allowed(self, rule: str, target: Mapping[str, str | None] | None = None) -> None:
        """Raise a 403 unless `is_allowed`."""
        if not self.is_allowed(rule, target):
            raise ApiError(HTTPStatus.FORBIDDEN, f"Policy does not allow {rule} to be performed.")

    def read_query(self) -> list[tuple[str, str]]:
        """Return the names and values of the query string; see `parse_query_string`."""
        return parse_query_string(self.request.query_string)


PIECES_KEY = "treeclaim.takes_pieces"
"""Key in the WSGI environment of a server that accepts memoryviews, and sends the pieces of a list together. Other servers
may require bytes, and send each piece separately."""

Content = dict[str, Any] | Iterable[bytes | memoryview] | None
"""The content of a response: a dictionary is serialized as JSON, a list of pieces is sent as a whole, another iterable of
pieces is streamed."""


class Reply(NamedTuple):
    """A successful response: its content and headers.

    Attributes:
        status: HTTP status; None for that of the first declared response.
        location: Path of the created resource, without the mount prefix.
        modified_at: Seconds since the epoch for Last-Modified, from 1.15. None stands for the present time if the
            response is declared with cache headers; otherwise it has none.
    """

    status: HTTPStatus | None = None
    body: Content = None
    location: str | None = None
    modified_at: float | None = None
    content_type: str = JSON

    @classmethod
    def of(cls, answer: "Answer") -> "Reply":
        """Convert the result of a handler to a reply."""
        return answer if isinstance(answer, Reply) else cls(body=answer)


Answer = Reply | Content
"""The result of a handler: a reply, or only its content."""
