# SPDX-License-Identifier: Apache-2.0
"""Providers in bulk, where an endpoint has that: some hundred are read, a thousand written by a call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError, UnsupportedFeatureError
from treeclaim.client.parallel import THREADS, in_parallel
from treeclaim.client.reports import BATCH, Reports

_REFUSALS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
"""What is about the providers of a call; single calls then find out about which."""

Item = TypeVar("Item")

_UUIDS_AT_ONCE = 200
"""Providers that are asked for in one URL, of 8 kB then."""


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

    found = in_parallel(read, pieces, threads=threads, progress=told)
    return {row["uuid"]: row for rows in found for row in rows}


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
