# SPDX-License-Identifier: Apache-2.0
"""Calls to any Placement API endpoint."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import orjson

from treeclaim.client.errors import ClientError, ConsumerExistsError
from treeclaim.client.patience import Patience, may_repeat, retried
from treeclaim.client.requests import bodies
from treeclaim.client.requests.placing import (
    HOLDS,
    Capacity,
    Domains,
    Placed,
    PlacingRequest,
    PlacingRule,
)
from treeclaim.client.requests.placing import NEED as PLACING
from treeclaim.client.requests.queries import CandidateQuery
from treeclaim.client.transport import (
    PlainTransport,
    Response,
    Transport,
    failure_of,
    query_string,
)
from treeclaim.client.versions import LATEST_EXTENSION, LATEST_MINOR, Need, ServerVersions
from treeclaim.model.microversions import ExtensionFeature, Feature


class Client:
    """A connection to one endpoint.

    It asks for the highest version that both sides know, and writes each body in that version's
    form. Calls raise ClientError if the endpoint refuses, or does not answer, and
    UnsupportedFeatureError, before anything is sent, if the server is too old for what they ask.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        token: str = "",
        *,
        transport: Transport | None = None,
        highest_minor: int = LATEST_MINOR,
        patience: Patience | None = None,
    ) -> None:
        """Connect by URL and token, or by a transport.

        Args:
            endpoint: URL; None if a transport is given.
            token: Sent with every call to the endpoint.
            transport: How calls travel instead.
            highest_minor: Highest microversion 1.N to use.
            patience: How long calls that may be repeated are, while the service is busy or starts
                again; None for the usual time.
        """
        if transport is None and endpoint is None:
            raise ClientError("neither an endpoint nor a session was given")
        self._transport = transport or PlainTransport(endpoint or "", token)
        self._highest_minor = highest_minor
        self._patience = patience or Patience()

    def __enter__(self) -> Self:
        """Use the client in a with statement."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self._transport.close()

    def limited_to(self, highest_minor: int) -> "Client":
        """Return a client of the same endpoint, over the same transport, for an older version."""
        return Client(
            transport=self._transport,
            highest_minor=min(highest_minor, self._highest_minor),
            patience=self._patience,
        )

    @cached_property
    def versions(self) -> ServerVersions:
        """The versions that the server has and this client may use; asked once.

        Raises:
            ClientError: if the endpoint is not a Placement API.
        """
        answer = self._send("GET", "/", {})
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise failure_of("GET /", answer)
        try:
            highest = _highest(answer)
        except (ValueError, KeyError, TypeError) as error:
            raise ClientError(
                f"the answer is not the version document of Placement: {error}"
            ) from error
        minor = min(highest, self._highest_minor)
        extension = self._extension() if minor == LATEST_MINOR else None
        return ServerVersions(minor, extension)

    def _extension(self) -> int | None:
        """Return the highest version of the extension that both sides know, None without it."""
        answer = self._send("GET", "/treeclaim", {})
        if answer.status != HTTPStatus.OK:
            return None
        try:
            return min(_highest(answer), LATEST_EXTENSION)
        except (ValueError, KeyError, TypeError):
            return None

    def call(
        self, method: str, path: str, *, json: Any = None, extended: bool = False
    ) -> Response:
        """Make a call at the highest version.

        Args:
            method: The HTTP method.
            path: With the query string.
            json: The body; None for none.
            extended: True to ask for the extension too.

        Raises:
            ClientError: if the endpoint cannot be reached or answers with an error.
        """
        versions = self.versions
        plain = ServerVersions(versions.minor, extension=None)
        headers = {"OpenStack-API-Version": (versions if extended else plain).header}
        answer = self._send(method, path, headers, json)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise failure_of(f"{method} {path}", answer)
        return answer

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], json: Any = None
    ) -> Response:
        """Send a request; repeat it, if that is allowed, while the service asks for patience."""
        headers = {"Accept": "application/json", **headers}
        send = partial(self._transport.send, method, path, headers, json)
        return self._patience.ask(send, may_repeat=may_repeat(method, path))

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON of a GET."""
        query = f"?{query_string(parameters)}" if parameters else ""
        return self.call("GET", path + query).json()

    def providers(self, **filters: str) -> list[dict[str, Any]]:
        """List providers."""
        rows: list[dict[str, Any]] = self.get("/resource_providers", **filters)[
            "resource_providers"
        ]
        return rows

    def ensure_names(self, traits: Sequence[str], resource_classes: Sequence[str]) -> None:
        """Create custom traits and resource classes that do not exist."""
        for name in traits:
            self.call("PUT", f"/traits/{name}")
        for name in resource_classes:
            self.call("PUT", f"/resource_classes/{name}")

    def candidates(self, query: str | CandidateQuery) -> dict[str, Any]:
        """Ask for allocation candidates."""
        return self._ask("/allocation_candidates", query)

    def explain(self, query: str | CandidateQuery) -> dict[str, Any]:
        """Ask why there are no candidates; needs the extension (contract page 97, section 3)."""
        self.versions.require(
            Need("explain", LATEST_MINOR, extension=ExtensionFeature.MORE_CONSTRAINTS)
        )
        return self._ask("/allocation_candidates/explain", query)

    def _ask(self, path: str, query: str | CandidateQuery) -> dict[str, Any]:
        parsed = CandidateQuery.parsed(query) if isinstance(query, str) else query
        needs = parsed.needs()
        self.versions.require(Need("allocation candidates", Feature.ALLOCATION_CANDIDATES), *needs)
        is_extended = path.endswith("explain") or any(need.extension is not None for need in needs)
        answer: dict[str, Any] = self.call("GET", f"{path}?{parsed}", extended=is_extended).json()
        return answer

    def alternatives(self, queries: Sequence[str | CandidateQuery]) -> dict[str, Any]:
        """Ask for the candidates of the first query that has any; `alternative` tells which."""
        body = {"alternatives": [str(query) for query in queries]}
        answer: dict[str, Any] = self._post("/treeclaim/candidates", body)
        return answer

    def place(
        self,
        requests: Sequence[PlacingRequest],
        rules: Sequence[PlacingRule] = (),
        *,
        partial: bool = False,
        dry_run: bool = False,
        explain: bool = False,
    ) -> Placed:
        """Find places for consumers and claim them, in one transaction of the server.

        The same call may be made again, whatever became of the first one.

        Args:
            requests: Who wants what.
            rules: What must hold between their places.
            partial: Place what can be placed, instead of all or nothing.
            dry_run: Find places, and claim nothing.
            explain: Make the answer say why the first unplaced one found nothing.

        Raises:
            ClientError: if not all can be placed, or one holds something else already.
        """
        self.versions.require(*(request.need for request in requests))
        body = {
            "requests": [request.body() for request in requests],
            "rules": [rule.body() for rule in rules],
            "partial": partial,
            "dry_run": dry_run,
            "explain": explain,
        }
        return Placed.read(self._post("/treeclaim/placements", body))

    def capacity(
        self,
        requests: Mapping[str, str | CandidateQuery],
        domains: Domains | None = None,
        limit: int | None = None,
    ) -> dict[str, Capacity]:
        """Ask how many consumers of each of some requests fit.

        Args:
            requests: Queries by names that the caller chooses.
            domains: Trees or aggregates, for each of which the answer also has a count.
            limit: The most of them in the answer.
        """
        body: dict[str, Any] = {
            "requests": {name: str(request) for name, request in requests.items()}
        }
        if domains is not None:
            body["domains"] = domains if isinstance(domains, str) else list(domains)
        if limit is not None:
            body["limit"] = limit
        answers = self._post("/treeclaim/capacity", body)["capacity"]
        return {name: Capacity.read(request) for name, request in answers.items()}

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        self.versions.require(PLACING)
        return self.call("POST", path, json=body, extended=True).json()

    def claim(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        *,
        project_id: str,
        user_id: str,
        consumer_type: str = "INSTANCE",
        replace: bool = True,
        from_holds: Sequence[str] = (),
    ) -> None:
        """Claim a candidate for a consumer; whatever it held before is replaced.

        A claim that conflicts with a concurrent one is tried again with the consumer's present generation.

        Args:
            consumer_uuid: For whom.
            allocation_request: What, as a search answers it.
            project_id: The consumer's project.
            user_id: The consumer's user.
            consumer_type: Such as INSTANCE.
            replace: False to refuse a consumer that holds something.
            from_holds: Uuids of the holds from which it draws.

        Raises:
            ConsumerExistsError: if it holds something that is not to be replaced.
            ClientError: if the resources are gone, or the claim is refused for another reason.
        """
        if from_holds:
            self.versions.require(HOLDS)
        owner = bodies.Owner(project_id, user_id, consumer_type)

        def attempt() -> None:
            present = self.get(f"/allocations/{consumer_uuid}")
            if present["allocations"] and not replace:
                raise ConsumerExistsError(consumer_uuid, present)
            body = bodies.claim(allocation_request, owner, present, self.versions.minor)
            if from_holds:
                body["from_holds"] = list(from_holds)
            self.call("PUT", f"/allocations/{consumer_uuid}", json=body, extended=True)

        retried(attempt)

    def move(self, source: str, target: str, *, replace: bool = False) -> None:
        """Give all allocations of one consumer to another one, in one transaction.

        Args:
            source: Who holds something.
            target: Who is to hold it; it gets the source's project and user.
            replace: True to replace what the target holds.

        Raises:
            ConsumerExistsError: if the target holds something that is not to be replaced.
            ClientError: if the source holds nothing, or the move is refused.
        """
        self.versions.require(Need("moving allocations", Feature.MANAGE_ALLOCATIONS))

        def attempt() -> None:
            held = self.get(f"/allocations/{source}")
            if not held["allocations"]:
                raise ClientError(f"consumer {source} holds nothing")
            receiver = self.get(f"/allocations/{target}")
            if receiver["allocations"] and not replace:
                raise ConsumerExistsError(target, receiver)
            body = bodies.move((source, held), (target, receiver), self.versions.minor)
            self.call("POST", "/allocations", json=body, extended=True)

        retried(attempt)

    def release(self, consumer_uuid: str) -> None:
        """Release everything that a consumer holds.

        Raises:
            ClientError: if it holds nothing.
        """
        self.call("DELETE", f"/allocations/{consumer_uuid}")


def _highest(answer: Response) -> int:
    """Return the highest minor version of a version document."""
    versions = orjson.loads(answer.text)["versions"]
    return max(int(version["max_version"].partition(".")[2]) for version in versions)
