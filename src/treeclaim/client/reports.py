# SPDX-License-Identifier: Apache-2.0
"""Bulk lists, totals, audits, batches, mixes and conditions: the extension from 1.1 on (pages 99 to 102)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from treeclaim.client.client import Client
from treeclaim.client.transport import escaped, query_string
from treeclaim.client.versions import Need
from treeclaim.model.microversions import ExtensionFeature, Feature
from treeclaim.model.parts import CONDITIONS

BATCH = 1_000
"""Most providers, or repairs, in one call."""

PLANNING = Need("planning", Feature.ANY_TRAITS, ExtensionFeature.ALL)
"""What a server must have to know of mixes, and of plans."""

BULK = Need("reports", Feature.ANY_TRAITS, ExtensionFeature.ALL)
"""What a server must have for these calls."""

Item = TypeVar("Item")

_MOST_NAMES = 10_000
"""Names of aggregates of a page, and of a call that writes them."""

_AGGREGATE_NAMES = "/treeclaim/aggregates/names"


def in_batches(items: Sequence[Item], most: int = BATCH) -> Iterator[Sequence[Item]]:
    """Yield what is to be written in pieces that fit into a call."""
    for first in range(0, len(items), most):
        yield items[first : first + most]


class Reports:
    """Calls of the extension, over a client's connection.

    Each raises ClientError if the endpoint refuses, has nothing of the name, or does not answer.
    """

    def __init__(self, client: Client) -> None:
        """Use a client.

        Raises:
            UnsupportedFeatureError: if the server does not have the extension.
        """
        client.versions.require(BULK)
        self._client = client

    def providers(
        self, *, include: Sequence[str] = (), **filters: str
    ) -> Iterator[dict[str, Any]]:
        """Yield all providers that pass some filters, page by page, with the included parts."""
        parts = {"include": ",".join(include)} if include else {}
        yield from self._pages("/treeclaim/providers", "providers", filters | parts)

    def consumers(self, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield all consumers that pass some filters, with all that each holds."""
        yield from self._pages("/treeclaim/allocations", "consumers", filters)

    def holds(self, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield all holds that pass some filters, with what they hold and what is drawn."""
        yield from self._pages("/treeclaim/holds", "holds", filters)

    def change_holds(self, terms: Mapping[str, Mapping[str, Any]]) -> tuple[int, list[str]]:
        """Change some terms of at most `BATCH` holds; no generation changes.

        Args:
            terms: By uuid of a hold, with the names that the service has for them.

        Returns:
            How many of the holds exist, and the uuids of those that do not.
        """
        body = {"holds": {uuid: dict(some) for uuid, some in terms.items()}}
        told = self._post("/treeclaim/holds", body)
        return told["updated"], told["unknown"]

    def keep_requests(self, requests: Mapping[str, Sequence[str] | None]) -> tuple[int, list[str]]:
        """Keep the requests of at most `BATCH` consumers (page 100, section 4).

        Args:
            requests: Queries by uuid of a consumer; None to forget them.

        Returns:
            How many of the consumers exist, and the uuids of those that do not.
        """
        told = self._post("/treeclaim/requests", {"requests": dict(requests)})
        return told["updated"], told["unknown"]

    def mixes(self) -> dict[str, dict[str, Any]]:
        """Return all mixes by name, each as it was put (page 101, section 2)."""
        mixes: dict[str, dict[str, Any]] = self._get("/treeclaim/mixes", {})["mixes"]
        return mixes

    def mix(self, name: str) -> dict[str, Any]:
        """Return a mix as it was put."""
        return self._get(_of_mix(name), {})

    def put_mix(self, name: str, requests: Mapping[str, Mapping[str, Any]]) -> None:
        """Make or replace a mix.

        Args:
            name: The name of the mix.
            requests: By their own names, each with `query` and `weight`.
        """
        body = {"requests": {each: dict(request) for each, request in requests.items()}}
        self._client.call("PUT", _of_mix(name), json=body, extended=True)

    def delete_mix(self, name: str) -> None:
        """Delete a mix."""
        self._client.call("DELETE", _of_mix(name), extended=True)

    def aggregate_names(self) -> dict[str, str]:
        """Return the names of all aggregates that have one, by uuid."""
        names: dict[str, str] = {}
        for page in self._whole_pages(_AGGREGATE_NAMES, _MOST_NAMES, {}):
            names |= page["names"]
        return names

    def name_aggregates(self, names: Mapping[str, str | None]) -> None:
        """Name any number of aggregates, or take their names away.

        Args:
            names: By uuid; None takes a name away.
        """
        for some in in_batches(list(names.items()), _MOST_NAMES):
            self._client.call("POST", _AGGREGATE_NAMES, json={"names": dict(some)}, extended=True)

    def conditions(self, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield those of the providers that pass some filters that have conditions, with these."""
        for row in self.providers(include=[CONDITIONS.name], **filters):
            if row[CONDITIONS.name]:
                yield row

    def put_condition(
        self, provider: str, key: str, *, dry_run: bool = False, **members: Any
    ) -> dict[str, int] | None:
        """Give a provider a condition, in place of the one with its key (page 102, section 3).

        Args:
            provider: The uuid of the provider.
            key: The key of the condition.
            dry_run: True to only be told what it would touch.
            members: As the service has them: `effect`, `until`, `reason`, `on_use`, `began`.

        Returns:
            How many consumers and providers it would touch; None if it was put.
        """
        path = _of_condition(provider, key) + ("?dry_run=true" if dry_run else "")
        answer = self._client.call("PUT", path, json=members, extended=True)
        return answer.json() if dry_run else None

    def delete_condition(self, provider: str, key: str) -> None:
        """Take a condition from a provider."""
        self._client.call("DELETE", _of_condition(provider, key), extended=True)

    def totals(self, **filters: str) -> dict[str, dict[str, int]]:
        """Return the sums over the inventories of the providers that pass some filters."""
        totals: dict[str, dict[str, int]] = self._get("/treeclaim/totals", filters)["totals"]
        return totals

    def parts(self, by: str, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield the sums of each tree, aggregate or trait."""
        yield from self._pages("/treeclaim/totals", "parts", {"by": by, **filters})

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
        """
        told: list[dict[str, Any]] = []
        for some in in_batches(repairs):
            body = {"repairs": list(some), "dry_run": dry_run}
            told += self._post("/treeclaim/audit/repairs", body)["repairs"]
        return told

    def apply(
        self,
        providers: Sequence[Mapping[str, Any]],
        *,
        create_names: bool = False,
        dry_run: bool = False,
    ) -> list[dict[str, Any]]:
        """Bring at most `BATCH` providers to a state, all or none; return the result of each."""
        flags = {"create_names": create_names, "dry_run": dry_run}
        body = {"providers": list(providers), **flags}
        told: list[dict[str, Any]] = self._post("/treeclaim/providers", body)["providers"]
        return told

    def _pages(
        self, path: str, member: str, filters: Mapping[str, str]
    ) -> Iterator[dict[str, Any]]:
        for page in self._whole_pages(path, BATCH, filters):
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


def _of_condition(provider: str, key: str) -> str:
    return f"/treeclaim/providers/{provider}/conditions/{escaped(key)}"


def _with_query(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{query_string(query)}" if query else path
