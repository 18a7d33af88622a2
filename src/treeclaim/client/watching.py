# SPDX-License-Identifier: Apache-2.0
"""Watches an endpoint with the `treeclaim` extension: yields changes, or keeps a copy equal.

An answer is awaited for half a minute, then asked for again (contract page 99, section 4): so it
works through any proxy, with any transport, and where a server cannot hold watchers.
"""

import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.reports import in_batches
from treeclaim.client.states import UUIDS_AT_ONCE
from treeclaim.client.transport import query_string
from treeclaim.client.versions import LATEST_MINOR, Need
from treeclaim.model.microversions import ExtensionFeature

_WAIT_SECONDS = 30
"""Seconds that one answer is awaited: half of what transports and most proxies wait."""

_LEAST_SECONDS = 1.0
"""Seconds between two questions to a server that answers at once that there is nothing new."""

_LONGEST_PAUSE = 15.0
"""Seconds at most between two attempts to reach a server that fails; each pause doubles, from the
least, and is a random part of that, so that not all watchers come back at the same moment."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a provider.

    Attributes:
        uuid: Which.
        generation: As it is now; None if it is gone.
        what: What changed, at least: words of `model.parts.Part`.
    """

    uuid: str
    generation: int | None
    what: frozenset[str]

    @property
    def is_deleted(self) -> bool:
        """Tell whether the provider is gone."""
        return self.generation is None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes since the previous ones; each transaction whole or not at all.

    Attributes:
        changes: The changes of providers.
        catalogue: Whether traits or resource classes came, went or were renamed.
        cursor: Where to go on.
    """

    changes: Sequence[Change]
    catalogue: bool
    cursor: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Changes":
        """Read an answer of GET /treeclaim/changes."""
        changes = [
            Change(change["uuid"], change.get("generation"), frozenset(change.get("what", ())))
            for change in document["changes"]
        ]
        return cls(tuple(changes), document["catalogue"], document["cursor"])


class CursorExpiredError(ClientError):
    """The changes since a cursor are no longer known: list again."""


def watch(
    client: Client, since: str | None = None, *, in_tree: Collection[str] = ()
) -> Iterator[Changes]:
    """Yield changes as they are committed, for ever; wait for a lost server.

    Args:
        client: The client that talks to the endpoint.
        since: Cursor of a list or of changes; None for now.
        in_tree: Uuids of providers whose trees are watched; none for all.

    Raises:
        CursorExpiredError: if the cursor is too old; list again.
        UnsupportedFeatureError: if the server has no `treeclaim` 1.1.
        ClientError: if the server refuses the question.
    """
    _require(client)
    trees = {"in_tree": f"in:{','.join(in_tree)}"} if in_tree else {}
    cursor = since or Changes.of(_got(client, "/treeclaim/changes", trees)).cursor
    while True:
        began = time.monotonic()
        changes = Changes.of(
            _got(
                client,
                "/treeclaim/changes",
                {"since": cursor, "wait": str(_WAIT_SECONDS)} | trees,
            )
        )
        cursor = changes.cursor
        if changes.changes or changes.catalogue:
            yield changes
        elif time.monotonic() - began < _LEAST_SECONDS:
            time.sleep(_LEAST_SECONDS)


def follow(
    client: Client, include: Collection[str] = (), *, in_tree: Collection[str] = ()
) -> Iterator[dict[str, dict[str, Any]]]:
    """Keep a copy of all providers; yield it when complete, and after each change.

    Args:
        client: The client that talks to the endpoint.
        include: What of each provider, as GET /treeclaim/providers has it.
        in_tree: Uuids of providers whose trees are followed; none for all.

    Yields:
        The same dictionary each time, brought up to date: entries of GET /treeclaim/providers, by
        uuid.

    Raises:
        UnsupportedFeatureError: if the server has no `treeclaim` 1.1.
        ClientError: if the server refuses a question.
    """
    _require(client)
    filters = {"include": ",".join(include)} if include else {}
    if in_tree:
        filters["in_tree"] = f"in:{','.join(in_tree)}"
    copy: dict[str, dict[str, Any]] = {}
    while True:
        listed, cursor = _listed(client, filters)
        copy.clear()
        copy.update(listed)
        yield copy
        try:
            for changes in watch(client, cursor, in_tree=in_tree):
                _take_in(client, filters, copy, changes)
                yield copy
        except CursorExpiredError:
            # It was cut off for a day, or the database was restored.
            continue


def _listed(client: Client, filters: Mapping[str, str]) -> tuple[dict[str, dict[str, Any]], str]:
    """Return all pages of a list, and the cursor of the first."""
    page = _got(client, "/treeclaim/providers", filters)
    cursor: str = page["cursor"]
    rows = {provider["uuid"]: provider for provider in page["providers"]}
    while page["links"]:
        marker = page["links"][0]["href"].partition("?")[2]
        page = _patiently(client, f"/treeclaim/providers?{marker}")
        rows |= {provider["uuid"]: provider for provider in page["providers"]}
    return rows, cursor


def _take_in(
    client: Client, filters: Mapping[str, str], copy: dict[str, dict[str, Any]], changes: Changes
) -> None:
    for some in in_batches([change.uuid for change in changes.changes], UUIDS_AT_ONCE):
        wanted = {"uuid": f"in:{','.join(some)}", "limit": str(UUIDS_AT_ONCE)}
        page = _got(client, "/treeclaim/providers", {**filters, **wanted})
        present = {provider["uuid"]: provider for provider in page["providers"]}
        for uuid in some:
            if uuid in present:
                copy[uuid] = present[uuid]
            else:
                copy.pop(uuid, None)


def _require(client: Client) -> None:
    client.versions.require(Need("watching", LATEST_MINOR, extension=ExtensionFeature.ALL))


def _got(client: Client, path: str, parameters: Mapping[str, str]) -> Any:
    return _patiently(client, f"{path}?{query_string(parameters, ':,')}")


def _patiently(client: Client, path: str) -> Any:
    """Ask until there is an answer, or a refusal that would come again."""
    pause = _LEAST_SECONDS
    while True:
        try:
            return client.call("GET", path, extended=True).json()
        except ClientError as error:
            if error.status == HTTPStatus.GONE:
                raise CursorExpiredError(str(error), error.status) from error
            if error.status is not None and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
        time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - for no secret
        pause = min(2 * pause, _LONGEST_PAUSE)
