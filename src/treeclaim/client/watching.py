# SPDX-License-Identifier: Apache-2.0
"""Watches an endpoint with the `treeclaim` extension: yields changes, or maintains a copy.

Each request waits for at most half a minute, and is then repeated (contract page 99, section 4). This works through
any proxy, with any transport, and with servers without room for watchers.
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
"""Seconds that a request waits: half of the timeout of transports and most proxies."""

_LEAST_SECONDS = 1.0
"""Least seconds between two requests if the server does not wait."""

_LONGEST_PAUSE = 15.0
"""Most seconds between two attempts to reach a failing server. Pauses double from the least, and are randomized
so that watchers do not return all at once."""


Result = TypeVar("Result")


class CursorExpiredError(ClientError):
    """The server no longer has the changes since a cursor; list again."""


def watch(
    client: Client, since: str | None = None, *, in_tree: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield changes as they are committed, forever; retry while the server is unavailable.

    Args:
        client: The client of the endpoint.
        since: Cursor of a list or of changes; None for now.
        in_tree: Uuids of providers in the watched trees; empty for all trees.

    Yields:
        Documents of GET /treeclaim/changes with at least one change.

    Raises:
        CursorExpiredError: if the cursor is too old; list again.
    """
    client.require_extension("watching")
    trees = {"in_tree": f"in:{','.join(in_tree)}"} if in_tree else {}
    cursor = since or _get(client, "/treeclaim/changes", trees)["cursor"]
    while True:
        start = time.monotonic()
        query = {"since": cursor, "wait": str(_WAIT_SECONDS), **trees}
        changes = _get(client, "/treeclaim/changes", query)
        cursor = changes["cursor"]
        if changes["changes"] or changes["catalogue"]:
            yield changes
        elif time.monotonic() - start < _LEAST_SECONDS:
            time.sleep(_LEAST_SECONDS)


def follow(
    client: Client, include: Collection[str] = (), *, in_tree: Collection[str] = ()
) -> Iterator[dict[str, dict[str, Any]]]:
    """Maintain a copy of all providers; yield it when complete, and after each change.

    Args:
        client: The client of the endpoint.
        include: Parts of GET /treeclaim/providers.
        in_tree: Uuids of providers in the followed trees; empty for all trees.

    Yields:
        One updated dictionary of entries of GET /treeclaim/providers by uuid.
    """
    client.require_extension("watching")
    filters = {"include": ",".join(include)} if include else {}
    if in_tree:
        filters["in_tree"] = f"in:{','.join(in_tree)}"
    copy: dict[str, dict[str, Any]] = {}

    def replace(uuids: Collection[str], **query: str) -> str:
        """Replace providers in the copy with those read; return the cursor of the list."""
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
            # The watch was interrupted for a day, or the database was restored: list again.
            continue


def _get(client: Client, path: str, query: Mapping[str, str]) -> Any:
    return _repeat(lambda: client.get(path, **query))


def _repeat(read: Callable[[], Result]) -> Result:
    """Read until a response or a permanent error."""
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
