# SPDX-License-Identifier: Apache-2.0
"""The argument of a handler, the services that it uses, and its successful answer."""

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
"""Key of a function in the WSGI environment that returns whether the client has
closed its connection."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running service.

    Attributes:
        store: The database.
        replica: This worker's in-memory copy of it.
        batches: Places single consumers; concurrent ones are placed together.
        hub: Notifies watchers of changes.
        policy: The policy rules.
        search: The operator's options for searches.
        options: The operator's options of the group `treeclaim`, including the limits of a request.
        claim_attempts: Most attempts to place consumers while other writers interfere.
        admission: Limits of concurrent requests.
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
    """A schema for each microversion, created at its first use, or one schema for all of them."""

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
        identity: The caller.
        services: The services of the process.
        arguments: The variables of the path.
        body: Schema of the operation's JSON body; None if a body is ignored.
        most_values: Most values of that body.
        deadline: Deadline of the handler; searches and transactions have their own.
        client_gone: Returns whether the client has closed the connection; None if that is unknown.
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
        """Return whether the request's version has a feature."""
        return self.version.has(feature)

    def link(self, path: str) -> str:
        """Return a path with the mount prefix, for links in bodies."""
        return f"{self.request.root_path}{path}"

    def json(self) -> Any:
        """Read and parse the body, and validate it by the schema of this version or by its model.

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
        parsed = parse_json(body, self.most_values, self.deadline.check)
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
        """Require that a rule of the policy allows the call; see `is_allowed`.

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
        return parse_query_string(self.request.query_string)


PIECES_KEY = "treeclaim.takes_pieces"
"""Key in the WSGI environment of a server that accepts memoryviews, and sends a list as one answer. Other servers may
require bytes, and send each piece separately."""


Content = dict[str, Any] | Iterable[bytes | memoryview] | None
"""A dictionary, which is serialized as JSON; or a list of pieces, which is sent as a whole; or an iterable of pieces,
which is streamed; None for no content."""


class Reply(NamedTuple):
    """A successful answer with more than its content.

    Attributes:
        status: HTTP status; None for that of the first declared answer.
        body: The content.
        location: Path of the created resource, without the mount prefix.
        modified_at: Seconds since the epoch for Last-Modified, from 1.15; None for the present time if the answer is
            declared as dated, and for no cache headers otherwise.
        content_type: The content type of the body.
    """

    status: HTTPStatus | None = None
    body: Content = None
    location: str | None = None
    modified_at: float | None = None
    content_type: str = JSON

    @classmethod
    def of(cls, answer: "Answer") -> "Reply":
        """Return the reply to which an answer amounts."""
        return answer if isinstance(answer, Reply) else cls(body=answer)


Answer = Reply | Content
"""What a handler returns: a reply, or only its content."""
