# SPDX-License-Identifier: Apache-2.0
"""Bulk lists, totals, audits, batches and mixes: the extension from version 1.1 on (pages 99 to 101)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError, UnsupportedFeatureError
from treeclaim.client.requests.placing import HOLDS
from treeclaim.client.transport import THREADS, escaped, in_parallel, query_string
from treeclaim.client.versions import Need
from treeclaim.model.microversions import ExtensionFeature, Feature

BATCH = 1_000
"""Most providers, or repairs, in one call."""


PLANNING = Need("planning", Feature.ANY_TRAITS, ExtensionFeature.PLANNING)
"""What a server must have to know of mixes, and of plans."""

BULK = Need("reports", Feature.ANY_TRAITS, ExtensionFeature.ORDER_AND_REPORTS)
"""What a server must have for these calls."""


_REFUSALS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
"""Errors about some provider of a call; single calls then find out which."""

Item = TypeVar("Item")

MOST_NAMES = 10_000
"""Names of aggregates of a page, and of a call that writes them."""

_AGGREGATE_NAMES = "/treeclaim/aggregates/names"

_UUIDS_AT_ONCE = 200
"""Providers that are asked for in one URL, of 8 kB then."""


class Reports:
    """Calls of the extension, over a client's connection."""

    def __init__(self, client: Client) -> None:
        """Use a client.

        Raises:
            UnsupportedFeatureError: if the server does not have version 1.1 of the extension.
        """
        client.versions.require(BULK)
        self._client = client

    def providers(
        self, *, include: Sequence[str] = (), limit: int = BATCH, **filters: str
    ) -> Iterator[dict[str, Any]]:
        """Yield all providers that pass some filters, page by page, with the included parts.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        parts = {"include": ",".join(include)} if include else {}
        yield from self._pages("/treeclaim/providers", "providers", limit, filters | parts)

    def consumers(self, *, limit: int = BATCH, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield all consumers that pass some filters, with all that each holds.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        yield from self._pages("/treeclaim/allocations", "consumers", limit, filters)

    def holds(self, *, limit: int = BATCH, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield all holds that pass some filters, with what they hold and what is drawn.

        Raises:
            UnsupportedFeatureError: if the server knows of no holds.
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.versions.require(HOLDS)
        yield from self._pages("/treeclaim/holds", "holds", limit, filters)

    def change_holds(self, terms: Mapping[str, Mapping[str, Any]]) -> tuple[int, list[str]]:
        """Change some terms of at most `BATCH` holds; no generation changes.

        Args:
            terms: By uuid of a hold, with the names that the service has for them.

        Returns:
            How many of the holds exist, and the uuids of those that do not.

        Raises:
            UnsupportedFeatureError: if the server knows of no holds.
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.versions.require(HOLDS)
        body = {"holds": {uuid: dict(some) for uuid, some in terms.items()}}
        told = self._post("/treeclaim/holds", body)
        return told["updated"], told["unknown"]

    def keep_requests(self, requests: Mapping[str, Sequence[str] | None]) -> tuple[int, list[str]]:
        """Keep the requests of at most `BATCH` consumers (page 100, section 4).

        Args:
            requests: Queries by uuid of a consumer; None to forget them.

        Returns:
            How many of the consumers exist, and the uuids of those that do not.

        Raises:
            UnsupportedFeatureError: if the server keeps no requests.
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.versions.require(HOLDS)
        told = self._post("/treeclaim/requests", {"requests": dict(requests)})
        return told["updated"], told["unknown"]

    def mixes(self) -> dict[str, dict[str, Any]]:
        """Return all mixes by name, each as it was written (page 101, section 2).

        Raises:
            UnsupportedFeatureError: if the server knows of no mixes.
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.versions.require(PLANNING)
        mixes: dict[str, dict[str, Any]] = self._get("/treeclaim/mixes", {})["mixes"]
        return mixes

    def mix(self, name: str) -> dict[str, Any]:
        """Return a mix as it was put.

        Raises:
            UnsupportedFeatureError: if the server knows of no mixes.
            ClientError: if the endpoint has none of this name, refuses, or does not answer.
        """
        self._client.versions.require(PLANNING)
        return self._get(_of_mix(name), {})

    def put_mix(self, name: str, requests: Mapping[str, Mapping[str, Any]]) -> None:
        """Make or replace a mix.

        Args:
            name: The name of the mix.
            requests: By their own names, each with `query` and `weight`.

        Raises:
            UnsupportedFeatureError: if the server knows of no mixes.
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.versions.require(PLANNING)
        body = {"requests": {each: dict(request) for each, request in requests.items()}}
        self._client.call("PUT", _of_mix(name), json=body, extended=True)

    def delete_mix(self, name: str) -> None:
        """Delete a mix.

        Raises:
            UnsupportedFeatureError: if the server knows of no mixes.
            ClientError: if the endpoint has none of this name, refuses, or does not answer.
        """
        self._client.versions.require(PLANNING)
        self._client.call("DELETE", _of_mix(name), extended=True)

    def aggregate_names(self) -> dict[str, str]:
        """Return the names of all aggregates that have one, by uuid.

        Raises:
            UnsupportedFeatureError: if the server keeps no names.
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.versions.require(HOLDS)
        names: dict[str, str] = {}
        for page in self._whole_pages(_AGGREGATE_NAMES, MOST_NAMES, {}):
            names |= page["names"]
        return names

    def name_aggregates(self, names: Mapping[str, str | None]) -> None:
        """Name up to `MOST_NAMES` aggregates, all or none.

        Args:
            names: By uuid; None takes a name away.

        Raises:
            UnsupportedFeatureError: if the server keeps no names.
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.versions.require(HOLDS)
        self._client.call("POST", _AGGREGATE_NAMES, json={"names": dict(names)}, extended=True)

    def totals(self, **filters: str) -> dict[str, dict[str, int]]:
        """Return the sums over the inventories of the providers that pass some filters.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        totals: dict[str, dict[str, int]] = self._get("/treeclaim/totals", filters)["totals"]
        return totals

    def parts(self, by: str, *, limit: int = BATCH, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield the sums of each tree, aggregate or trait.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        yield from self._pages("/treeclaim/totals", "parts", limit, {"by": by, **filters})

    def audit(
        self,
        *,
        kinds: Sequence[str] = (),
        limit: int | None = None,
        living: Mapping[str, Sequence[str]] | None = None,
        older_than: int | None = None,
    ) -> dict[str, dict[str, Any]]:
        """Return the findings of an audit by kind: their number, and the first of them.

        Args:
            kinds: What to look for; empty for everything.
            limit: Most items of each kind; None for the server's default.
            living: Uuids of the living consumers, by type, to find the others.
            older_than: Seconds; consumers that were given something within them are not judged.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        query = {"kind": ",".join(kinds)} if kinds else {}
        if limit is not None:
            query["limit"] = str(limit)
        if living is None:
            answer = self._get("/treeclaim/audit", query)
        else:
            body: dict[str, Any] = {"living": {name: list(some) for name, some in living.items()}}
            if older_than is not None:
                body["older_than"] = older_than
            answer = self._post(_with_query("/treeclaim/audit", query), body)
        findings: dict[str, dict[str, Any]] = answer["findings"]
        return findings

    def repair(
        self, repairs: Sequence[Mapping[str, Any]], *, dry_run: bool = False
    ) -> list[dict[str, Any]]:
        """Repair findings; return each with its `result`.

        Args:
            repairs: Items of an audit, each with its `kind`.
            dry_run: True to only return what would become of them.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        told: list[dict[str, Any]] = []
        for first in range(0, len(repairs), BATCH):
            body = {"repairs": list(repairs[first : first + BATCH]), "dry_run": dry_run}
            told += self._post("/treeclaim/audit/repairs", body)["repairs"]
        return told

    def apply(
        self,
        providers: Sequence[Mapping[str, Any]],
        *,
        create_names: bool = False,
        dry_run: bool = False,
    ) -> list[dict[str, Any]]:
        """Create or change at most `BATCH` providers, all or none; return the result of each.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        body = {"providers": list(providers), "create_names": create_names, "dry_run": dry_run}
        told: list[dict[str, Any]] = self._post("/treeclaim/providers", body)["providers"]
        return told

    def _pages(
        self, path: str, member: str, limit: int, filters: Mapping[str, str]
    ) -> Iterator[dict[str, Any]]:
        for page in self._whole_pages(path, limit, filters):
            yield from page[member]

    def _whole_pages(
        self, path: str, limit: int, filters: Mapping[str, str]
    ) -> Iterator[dict[str, Any]]:
        query = {**filters, "limit": str(limit)}
        while True:
            page = self._get(path, query)
            yield page
            following = [link["href"] for link in page["links"] if link["rel"] == "next"]
            if not following:
                return
            # The path of the link has the mount prefix, which the endpoint's URL has too.
            query["marker"] = dict(parse_qsl(urlsplit(following[0]).query))["marker"]

    def _get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.call(
            "GET", _with_query(path, query), extended=True
        ).json()
        return answer

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.call(
            "POST", path, json=dict(body), extended=True
        ).json()
        return answer


def _of_mix(name: str) -> str:
    return f"/treeclaim/mixes/{escaped(name)}"


def _with_query(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{query_string(query)}" if query else path


def rows_in_bulk(
    client: Client,
    uuids: Sequence[str],
    include: Sequence[str],
    *,
    threads: int = THREADS,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Mapping[str, Mapping[str, Any]] | None:
    """Read providers by some hundred in a call, each as it is at one moment.

    Args:
        client: The endpoint.
        uuids: Which.
        include: What of them, as GET /treeclaim/providers has it.
        threads: How many calls are made at once.
        progress: Told how many are read, and how many there are.

    Returns:
        Those that exist, by uuid; None if the endpoint has no such call.

    Raises:
        ClientError: if the endpoint fails.
    """
    try:
        reports = Reports(client)
    except UnsupportedFeatureError:
        return None
    pieces = [
        uuids[first : first + _UUIDS_AT_ONCE] for first in range(0, len(uuids), _UUIDS_AT_ONCE)
    ]

    def read(some: Sequence[str]) -> list[dict[str, Any]]:
        return list(reports.providers(include=include, uuid=f"in:{','.join(some)}"))

    def told(done: int, total: int) -> None:
        progress(
            min(done * _UUIDS_AT_ONCE, len(uuids)) if done < total else len(uuids), len(uuids)
        )

    answers = in_parallel(read, pieces, threads=threads, progress=told)
    return {row["uuid"]: row for rows in answers for row in rows}


def in_batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield what is to be written in pieces that fit into a call."""
    for first in range(0, len(items), BATCH):
        yield items[first : first + BATCH]


def applied_in_bulk(client: Client, entries: Sequence[Mapping[str, Any]]) -> bool:
    """Make or change up to `BATCH` providers by one call; return False if it was refused.

    Nothing was done then, and single calls may do what can be done.

    Raises:
        ClientError: if the endpoint fails.
    """
    try:
        Reports(client).apply(entries)
    except UnsupportedFeatureError:
        return False
    except ClientError as error:
        if error.status not in _REFUSALS:
            raise
        return False
    return True
