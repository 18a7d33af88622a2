# SPDX-License-Identifier: Apache-2.0
"""Calls to a Placement API endpoint, with the documents of the contract as arguments and results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, urlsplit

import orjson

from treeclaim.client.errors import (
    ClientError,
    ConsumerExistsError,
    UnsupportedFeatureError,
    parse_error_response,
)
from treeclaim.client.queries import CandidateQuery, Request, serialize_request
from treeclaim.client.retry import Patience, is_outcome_unknown, is_repeatable
from treeclaim.client.session import BATCH, encode_query, make_adapter, make_session, send
from treeclaim.model import microversions
from treeclaim.model.claim import HOLD_TYPE
from treeclaim.model.microversions import EXTENSION_MINOR, EXTENSION_VERSION, Feature

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session

_LATEST = microversions.MAXIMUM.minor
_EXTENSION = ("/treeclaim/", "/allocation_candidates/explain")


class Client:
    """A client of one endpoint.

    It uses placement 1.39, and the `treeclaim` extension where the server has it. Every call raises ClientError if
    the endpoint rejects it or does not answer. It raises UnsupportedFeatureError, before anything is sent, if the
    server is older or lacks a required extension.
    """

    def __init__(
        self,
        endpoint: str = "",
        token: str = "",
        *,
        adapter: "Adapter | None" = None,
        patience: Patience | None = None,
    ) -> None:
        """Connect by URL and token, or by the adapter of a keystoneauth1 session.

        Args:
            endpoint: URL; empty with an adapter.
            token: Sent with every call to the endpoint.
            adapter: An adapter of `make_adapter`; the client leaves its session open.
            patience: Rules for repeated calls while the service is busy or restarting; None for a minute.

        Raises:
            ClientError: if the URL or the token is invalid.
        """
        self._session: Session | None = None
        if adapter is None:
            self._session = make_session(endpoint, token)
            adapter = make_adapter(self._session)
        self._adapter = adapter
        self._patience = patience or Patience()

    def __enter__(self) -> Self:
        """Use the client in a with statement."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connections."""
        if self._session is not None:
            self._session.close()

    @cached_property
    def extension(self) -> int | None:
        """The version 1.N of the extension in use; None if the server has none."""
        response = self.send("GET", "/", {})
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            raise parse_error_response("GET /", response)
        highest_minor = _find_highest_minor(response)
        if highest_minor is None:
            raise ClientError("the answer is not the version document of Placement")
        if highest_minor < _LATEST:
            raise UnsupportedFeatureError(
                f"the client needs placement 1.{_LATEST}, but the server has 1.{highest_minor} only"
            )
        extension = _find_highest_minor(self.send("GET", "/treeclaim", {}))
        return None if extension is None else min(extension, EXTENSION_MINOR)

    def require_extension(self, feature: str) -> None:
        """Raise UnsupportedFeatureError, which names the feature, unless the server has the extension."""
        if self.extension is None:
            raise UnsupportedFeatureError(
                f"{feature} needs treeclaim {EXTENSION_VERSION}, but the server has "
                f"placement 1.{_LATEST} only"
            )

    def send(self, method: str, path: str, headers: Mapping[str, str], json: Any = None) -> Any:
        """Send a request, and repeat it, if possible, while the service is busy or restarting.

        Return the response of the session, of any status. Raise ClientError without a response.
        """
        headers = {"Accept": "application/json", **headers}

        def attempt() -> Any:
            response = send(self._adapter, method, path, headers, json)
            if (
                response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
                and "retry-after" in response.headers
            ):
                raise parse_error_response(f"{method} {path}", response)
            return response

        return self._patience.repeat(attempt) if is_repeatable(method, path) else attempt()

    def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        extended: bool = False,
        minor: int = _LATEST,
    ) -> Any:
        """Make a call; return the document of the response, None for an empty one.

        Args:
            method: The HTTP method.
            path: Path and query string. Paths of the extension require it of the server.
            json: The body, or None.
            extended: True to use the extension, if available, for a path outside it.
            minor: The microversion 1.N.
        """
        if path.startswith(_EXTENSION):
            self.require_extension(f"{method} {path.partition('?')[0]}")
            extended = True
        extension = self.extension
        version = f"placement 1.{minor}"
        if extended and extension is not None:
            version += f", treeclaim 1.{extension}"
        response = self.send(method, path, {"OpenStack-API-Version": version}, json)
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            raise parse_error_response(f"{method} {path}", response)
        if not response.content:
            return None
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError as error:
            raise ClientError(
                f"the endpoint answered {response.status_code} with a body that is not JSON: "
                f"{response.content[:80].decode(errors='replace')!r}"
            ) from error

    def get(self, path: str, **parameters: str) -> Any:
        """Return the document of a GET."""
        return self.call("GET", path + (f"?{encode_query(parameters)}" if parameters else ""))

    def pages(self, path: str, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list of the extension."""
        query = {"limit": str(BATCH), **filters}
        while True:
            page = self.get(path, **query)
            yield page
            next_links = [link["href"] for link in page["links"] if link["rel"] == "next"]
            if not next_links:
                return
            # The link's path has the mount prefix that the endpoint's URL has, too.
            query["marker"] = dict(parse_qsl(urlsplit(next_links[0]).query))["marker"]

    def rows(self, path: str, member: str, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages of a list, such as the `holds` of `/treeclaim/holds`."""
        for page in self.pages(path, **filters):
            yield from page[member]

    def providers(self, **filters: str) -> list[dict[str, Any]]:
        """Return the providers that match filters."""
        rows: list[dict[str, Any]] = self.get("/resource_providers", **filters)[
            "resource_providers"
        ]
        return rows

    def provider_states(
        self, include: Iterable[str] = (), **filters: str
    ) -> Iterator[dict[str, Any]]:
        """Yield the providers that match filters, with the included parts (page 99, section 2)."""
        if parts := ",".join(include):
            filters["include"] = parts
        return self.rows("/treeclaim/providers", "providers", **filters)

    def apply_providers(
        self, entries: Sequence[Mapping[str, Any]], *, dry_run: bool = False
    ) -> None:
        """Write at most `BATCH` providers, all or none; create unknown custom names."""
        body = {"providers": list(entries), "create_names": True, "dry_run": dry_run}
        self.call("POST", "/treeclaim/providers", body)

    def candidates(self, query: str | CandidateQuery) -> dict[str, Any]:
        """Return the allocation candidates of a query."""
        return self._search("GET", f"/allocation_candidates?{query}")

    def explain(self, query: str | CandidateQuery) -> dict[str, Any]:
        """Return the reasons why a query has no candidates (page 97, section 3)."""
        return self._search("GET", f"/allocation_candidates/explain?{query}")

    def place(
        self,
        requests: Sequence[Mapping[str, Any]],
        rules: Sequence[Mapping[str, Any]] = (),
        **members: Any,
    ) -> dict[str, Any]:
        """Find places for consumers and claim them in one transaction (page 98, section 4).

        The call may be repeated, whatever the outcome of the first one.

        Args:
            requests: Such as `{"alternatives": [query], "consumers": [uuid], "project_id": "p",
                "user_id": "u", "consumer_type": "INSTANCE"}`.
            rules: Such as `{"domains": "tree", "max_per_domain": 1}`.
            members: Further members of the body: `partial`, `dry_run`, `explain`.

        Raises:
            ClientError: if a consumer has no place, or has other allocations already.
        """
        body = {"requests": list(requests), "rules": list(rules), **members}
        return self._search("POST", "/treeclaim/placements", body)

    def capacity(self, requests: Mapping[str, str], **members: Any) -> dict[str, Any]:
        """Return the number of consumers that still fit, for each request (page 98, section 5).

        Args:
            requests: Queries by freely chosen names.
            members: Further members of the body: `domains`, `limit`.
        """
        body = {"requests": dict(requests), **members}
        return dict(self._search("POST", "/treeclaim/capacity", body)["capacity"])

    def _search(self, method: str, path: str, json: Any = None) -> dict[str, Any]:
        document: dict[str, Any] = self.call(method, path, json, extended=True)
        return document

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
        hold: Mapping[str, Any] | None = None,
    ) -> None:
        """Claim a candidate for a consumer.

        The client repeats a claim after a conflict with a concurrent write of the consumer. After a lost response it
        first checks whether the server committed the claim.

        Args:
            consumer_uuid: The consumer.
            allocation_request: A candidate of a search.
            project_id: The consumer's project.
            user_id: The consumer's user.
            consumer_type: Such as INSTANCE; None for a consumer without a type, whose claim cannot use the
                extension.
            request: Query of the candidate, or alternatives, for the server to store (page 100, section 4).
            replace: True to replace existing allocations of the consumer.
            from_holds: Uuids of the holds from which the consumer draws.
            hold: Terms of a new hold (page 100, section 1); None for other consumers.

        Raises:
            ConsumerExistsError: if the consumer has allocations, and `replace` is false.
            ClientError: if the server rejects the claim, or stays unavailable.
        """
        body = _build_claim_body(allocation_request, project_id, user_id, consumer_type)
        if from_holds or hold is not None:
            self.require_extension("holds")
        if from_holds:
            body["from_holds"] = list(from_holds)
        if hold is not None:
            body |= {"hold": dict(hold), "consumer_type": HOLD_TYPE}
        if request is not None and self.extension is not None:
            body["request"] = serialize_request(request)
        self._write_claim(consumer_uuid, body, replace=replace)

    def _write_claim(self, consumer_uuid: str, body: dict[str, Any], *, replace: bool) -> None:
        """Write a claim; repeat it after a lost response only if it was not committed."""
        path, is_typed = f"/allocations/{consumer_uuid}", "consumer_type" in body
        minor = _LATEST if is_typed else Feature.CONSUMER_TYPES - 1
        may_be_committed = False

        def attempt() -> None:
            nonlocal may_be_committed
            present_document = self.get(path)
            if may_be_committed and _is_committed(body, present_document):
                return
            if present_document["allocations"] and not replace:
                raise ConsumerExistsError(consumer_uuid, present_document)
            body["consumer_generation"] = present_document.get("consumer_generation")
            try:
                self.call("PUT", path, body, extended=is_typed, minor=minor)
            except ClientError as error:
                may_be_committed |= is_outcome_unknown(error)
                raise

        self._patience.repeat(attempt)

    def release(self, consumer_uuid: str) -> bool:
        """Release all allocations of a consumer; return whether it had any."""

        def attempt() -> bool:
            try:
                self.call("DELETE", f"/allocations/{consumer_uuid}")
            except ClientError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                return False
            return True

        return self._patience.repeat(attempt)


def _find_highest_minor(response: Any) -> int | None:
    """Return the N of the highest version 1.N of a version document; None for another document."""
    try:
        versions = orjson.loads(response.content)["versions"]
        return max(int(version["max_version"].partition(".")[2]) for version in versions)
    except (ValueError, KeyError, TypeError):
        return None


def _build_claim_body(
    candidate: Mapping[str, Any], project_id: str, user_id: str, consumer_type: str | None
) -> dict[str, Any]:
    """Return the body of PUT /allocations/{consumer}, without the generation."""
    amounts = amounts_by_provider(candidate["allocations"])
    body: dict[str, Any] = {
        "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()},
        "project_id": project_id,
        "user_id": user_id,
    }
    if "mappings" in candidate:
        body["mappings"] = candidate["mappings"]
    if consumer_type is not None:
        body["consumer_type"] = consumer_type
    return body


def _is_committed(body: Mapping[str, Any], present_document: Mapping[str, Any]) -> bool:
    """Return whether a consumer's document has the allocations and the owner of a claim's body."""
    owner = ("project_id", "user_id")
    return all(present_document.get(name, body[name]) == body[name] for name in owner) and (
        amounts_by_provider(present_document["allocations"])
        == amounts_by_provider(body["allocations"])
    )


def amounts_by_provider(allocations: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the amounts of allocations by provider and resource class."""
    return {uuid: dict(allocation["resources"]) for uuid, allocation in allocations.items()}
