# SPDX-License-Identifier: Apache-2.0
"""Watches an endpoint with the `treeclaim` extension: yields changes, or keeps a copy equal.

Each request waits for half a minute at most, and is then repeated (contract page 99, section 4). This
works through any proxy, with any transport, and with servers that cannot hold watchers.
"""

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.session import split_batches
from treeclaim.client.states import UUIDS_AT_ONCE

_WAIT_SECONDS = 30
"""Seconds that one answer is awaited: half of what transports and most proxies wait."""

_LEAST_SECONDS = 1.0
"""Seconds between two questions to a server that answers at once that there is nothing new."""

_LONGEST_PAUSE = 15.0
"""Seconds at most between two attempts to reach a server that fails; each pause doubles, from the
least, and is a random part of that, so that not all watchers come back at the same moment."""


Result = TypeVar("Result")


class CursorExpiredError(ClientError):
    """The changes since a cursor are no longer known: list again."""


def watch(
    client: Client, since: str | None = None, *, in_tree: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield changes as they are committed, for ever; wait for a lost server.

    Args:
        client: The client that talks to the endpoint.
        since: Cursor of a list or of changes; None for now.
        in_tree: Uuids of providers whose trees are watched; none for all.

    Yields:
        Documents of GET /treeclaim/changes that have a change.

    Raises:
        CursorExpiredError: if the cursor is too old; list again.
        UnsupportedFeatureError: if the server does not have the extension.
        ClientError: if the server refuses the question.
    """
    client.require_extension("watching")
    trees = {"in_tree": f"in:{','.join(in_tree)}"} if in_tree else {}
    cursor = since or _get(client, "/treeclaim/changes", trees)["cursor"]
    while True:
        began = time.monotonic()
        query = {"since": cursor, "wait": str(_WAIT_SECONDS), **trees}
        changes = _get(client, "/treeclaim/changes", query)
        cursor = changes["cursor"]
        if changes["changes"] or changes["catalogue"]:
            yield changes
        elif time.monotonic() - began < _LEAST_SECONDS:
            time.sleep(_LEAST_SECONDS)


def follow(
    client: Client, include: Collection[str] = (), *, in_tree: Collection[str] = ()
) -> Iterator[dict[str, dict[str, Any]]]:
    """Keep a copy of all providers; yield it when complete, and after each change.

    Args:
        client: The client that talks to the endpoint.
        include: Parts of each provider, as in GET /treeclaim/providers.
        in_tree: Uuids of providers whose trees are followed; none for all.

    Yields:
        The same dictionary each time, brought up to date: entries of GET /treeclaim/providers, by
        uuid.

    Raises:
        UnsupportedFeatureError: if the server does not have the extension.
        ClientError: if the server refuses a request.
    """
    client.require_extension("watching")
    filters = {"include": ",".join(include)} if include else {}
    if in_tree:
        filters["in_tree"] = f"in:{','.join(in_tree)}"
    copy: dict[str, dict[str, Any]] = {}

    def replace(uuids: Collection[str], **query: str) -> str:
        """Read providers into the copy, in place of some; return the cursor of the list."""
        pages = _repeat(lambda: list(client.pages("/treeclaim/providers", **filters, **query)))
        for uuid in uuids:
            copy.pop(uuid, None)
        copy.update((row["uuid"], row) for page in pages for row in page["providers"])
        return str(pages[0]["cursor"])

    while True:
        cursor = replace(list(copy))
        yield copy
        try:
            for changes in watch(client, cursor, in_tree=in_tree):
                uuids = [change["uuid"] for change in changes["changes"]]
                for batch in split_batches(uuids, UUIDS_AT_ONCE):
                    replace(batch, uuid=f"in:{','.join(batch)}")
                yield copy
        except CursorExpiredError:
            # It was cut off for a day, or the database was restored.
            continue


def _get(client: Client, path: str, query: Mapping[str, str]) -> Any:
    return _repeat(lambda: client.get(path, **query))


def _repeat(read: Callable[[], Result]) -> Result:
    """Read until there is an answer, or a refusal that would come again."""
    pause = _LEAST_SECONDS
    while True:
        try:
            return read()
        except ClientError as error:
            if error.status == HTTPStatus.GONE:
                raise CursorExpiredError(str(error), error.status) from error
            if error.status is not None and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
        time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - for no secret
        pause = min(2 * pause, _LONGEST_PAUSE)
