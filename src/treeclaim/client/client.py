# SPDX-License-Identifier: Apache-2.0
"""Calls to any Placement API endpoint."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property, partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import orjson

from treeclaim.client.errors import ClientError, ConsumerExistsError
from treeclaim.client.patience import Patience, is_outcome_unknown, may_repeat, retried
from treeclaim.client.requests import bodies
from treeclaim.client.requests.placing import (
    HOLDS,
    Capacity,
    Domains,
    Hold,
    Placed,
    PlacingRequest,
    PlacingRule,
)
from treeclaim.client.requests.placing import NEED as PLACING
from treeclaim.client.requests.queries import CandidateQuery, Request, kept_request
from treeclaim.client.transport import (
    PlainTransport,
    Response,
    Transport,
    failure_of,
    query_string,
)
from treeclaim.client.versions import LATEST_EXTENSION, LATEST_MINOR, Need, ServerVersions
from treeclaim.model.extension.holds import HOLD_TYPE
from treeclaim.model.microversions import ExtensionFeature, Feature


class Client:
    """A connection to one endpoint.

    It uses placement 1.39, and the extension where the server has it. Calls raise ClientError if the
    endpoint refuses, or does not answer, and UnsupportedFeatureError, before anything is sent, if the
    server is older, or lacks the extension where a call needs it.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        token: str = "",
        *,
        transport: Transport | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Connect by URL and token, or by a transport.

        Args:
            endpoint: URL; None if a transport is given.
            token: Sent with every call to the endpoint.
            transport: How calls travel instead.
            patience: How long calls that may be repeated are, while the service is busy or starts
                again; None for the usual time.
        """
        if transport is None and endpoint is None:
            raise ClientError("neither an endpoint nor a session was given")
        self._transport = transport or PlainTransport(endpoint or "", token)
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

    @cached_property
    def versions(self) -> ServerVersions:
        """The versions of the server that the client uses; read once.

        Raises:
            UnsupportedFeatureError: if the server is older than placement 1.39.
            ClientError: if the endpoint is not a Placement API.
        """
        answer = self.send("GET", "/", {})
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise failure_of("GET /", answer)
        try:
            highest = _highest(answer)
        except (ValueError, KeyError, TypeError) as error:
            raise ClientError(
                f"the answer is not the version document of Placement: {error}"
            ) from error
        ServerVersions(highest, extension=None).require(Need("the client", LATEST_MINOR))
        return ServerVersions(LATEST_MINOR, self._extension())

    def _extension(self) -> int | None:
        """Return the highest version of the extension that both sides know, None without it."""
        answer = self.send("GET", "/treeclaim", {})
        if answer.status != HTTPStatus.OK:
            return None
        try:
            return min(_highest(answer), LATEST_EXTENSION)
        except (ValueError, KeyError, TypeError):
            return None

    def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        extended: bool = False,
        minor: int = LATEST_MINOR,
    ) -> Response:
        """Make a call.

        Args:
            method: The HTTP method.
            path: With the query string.
            json: The body; None for none.
            extended: True to use the extension, if the server has it.
            minor: The microversion 1.N.

        Raises:
            ClientError: if the endpoint cannot be reached or answers with an error.
        """
        versions = self.versions
        extension = versions.extension if extended else None
        headers = {"OpenStack-API-Version": ServerVersions(minor, extension).header}
        answer = self.send(method, path, headers, json)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise failure_of(f"{method} {path}", answer)
        return answer

    def send(
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
        self.versions.require(Need("explain", LATEST_MINOR, extension=ExtensionFeature.ALL))
        return self._ask("/allocation_candidates/explain", query)

    def _ask(self, path: str, query: str | CandidateQuery) -> dict[str, Any]:
        parsed = CandidateQuery.of(query)
        needs = parsed.needs()
        self.versions.require(*needs)
        is_extended = path.endswith("explain") or bool(needs)
        with self._suggesting_names([parsed]):
            answer: dict[str, Any] = self.call(
                "GET", f"{path}?{parsed}", extended=is_extended
            ).json()
        return answer

    @contextmanager
    def _suggesting_names(self, queries: Iterable[str | CandidateQuery]) -> Iterator[None]:
        """Add the nearest known name to the error of a query with an unknown class or trait.

        Raises:
            ClientError: that of the block.
        """
        try:
            yield
        except ClientError as error:
            if error.status != HTTPStatus.BAD_REQUEST or "did you mean" in str(error):
                raise
            if suggestions := self._nearest_names(map(CandidateQuery.of, queries)):
                error.args = (f"{error} Did you mean {', '.join(suggestions)}?",)
            raise

    def _nearest_names(self, queries: Iterable[CandidateQuery]) -> list[str]:
        """Return the known names nearest to the unknown ones of some queries."""
        named_classes: set[str] = set()
        named_traits: set[str] = set()
        for query in queries:
            classes, traits = query.names()
            named_classes |= classes
            named_traits |= traits
        try:
            known_classes = {
                entry["name"] for entry in self.get("/resource_classes")["resource_classes"]
            }
            known_traits = set(self.get("/traits")["traits"])
        except ClientError:
            # A suggestion is not worth another error.
            return []
        pairs = ((named_classes, known_classes), (named_traits, known_traits))
        return [
            near
            for names, known in pairs
            for name in sorted(names - known)
            for near in get_close_matches(name, known, 1)
        ]

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
        with self._suggesting_names(
            query for request in requests for query in request.alternatives
        ):
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
        with self._suggesting_names(requests.values()):
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
        consumer_type: str | None = "INSTANCE",
        request: Request | None = None,
        replace: bool = False,
        from_holds: Sequence[str] = (),
        hold: Hold | None = None,
    ) -> None:
        """Claim a candidate for a consumer.

        The client repeats a claim that conflicts with a concurrent write of the consumer, and a claim whose
        answer was lost, after reading whether the server committed it.

        Args:
            consumer_uuid: The consumer.
            allocation_request: A candidate, in the form that a search returns.
            project_id: The consumer's project.
            user_id: The consumer's user.
            consumer_type: Such as INSTANCE; None for a consumer without a type, whose claim has nothing of
                the extension.
            request: The query of the candidate, or a list of alternatives, kept as the consumer's request
                (contract page 100, section 4); a server without the extension keeps none.
            replace: True to replace existing allocations of the consumer.
            from_holds: Uuids of the holds from which the consumer draws.
            hold: Terms of the hold that the consumer is; None for another consumer.

        Raises:
            ConsumerExistsError: if the consumer has allocations, and `replace` is false.
            ClientError: if the claim is refused, or the server does not come back in time.
        """
        if from_holds or hold is not None:
            self.versions.require(HOLDS)
        owner = bodies.Owner(project_id, user_id, consumer_type)
        may_be_committed = False

        def attempt() -> None:
            nonlocal may_be_committed
            present = self.get(f"/allocations/{consumer_uuid}")
            if may_be_committed and bodies.is_claimed(allocation_request, owner, present):
                return
            if present["allocations"] and not replace:
                raise ConsumerExistsError(consumer_uuid, present)
            body = bodies.claim(allocation_request, owner, present)
            if from_holds:
                body["from_holds"] = list(from_holds)
            if hold is not None:
                body |= {"hold": hold.body(), "consumer_type": HOLD_TYPE}
            if request is not None and self.versions.has(HOLDS):
                body["request"] = kept_request(request)
            is_typed = consumer_type is not None
            minor = LATEST_MINOR if is_typed else Feature.CONSUMER_TYPES - 1
            path = f"/allocations/{consumer_uuid}"
            try:
                self.call("PUT", path, json=body, extended=is_typed, minor=minor)
            except ClientError as error:
                may_be_committed |= is_outcome_unknown(error)
                raise

        self._patience.complete(attempt)

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

        def attempt() -> None:
            held = self.get(f"/allocations/{source}")
            if not held["allocations"]:
                raise ClientError(f"consumer {source} holds nothing")
            receiver = self.get(f"/allocations/{target}")
            if receiver["allocations"] and not replace:
                raise ConsumerExistsError(target, receiver)
            body = bodies.move((source, held), (target, receiver))
            self.call("POST", "/allocations", json=body, extended=True)

        retried(attempt)

    def release(self, consumer_uuid: str) -> bool:
        """Release all allocations of a consumer; return whether it had any.

        Raises:
            ClientError: if the release is refused, or the server does not come back in time.
        """
        had_any = True

        def attempt() -> None:
            nonlocal had_any
            try:
                self.call("DELETE", f"/allocations/{consumer_uuid}")
            except ClientError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                had_any = False

        self._patience.complete(attempt)
        return had_any


def _highest(answer: Response) -> int:
    """Return the highest minor version of a version document."""
    versions = orjson.loads(answer.text)["versions"]
    return max(int(version["max_version"].partition(".")[2]) for version in versions)
