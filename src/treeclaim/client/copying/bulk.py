# SPDX-License-Identifier: Apache-2.0
"""Copying in bulk, where an endpoint has that: pages with everything, a thousand writes in a call."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.copying.contents import Provider, provider_differences
from treeclaim.client.errors import ClientError, UnsupportedFeatureError
from treeclaim.client.reports import BATCH, Reports

_REFUSALS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
"""What is about the providers of a call; single calls then find out about which."""

Pair = tuple[Provider, Provider | None]
"""A provider as the source has it, and as the target has it."""


def written_in_bulk(target: Client, pairs: Sequence[Pair]) -> bool:
    """Make or change up to `BATCH` providers by one call; return False if it was not to be.

    Nothing was done then, and single calls may do what can be done.

    Args:
        target: Where to write.
        pairs: Providers that differ. Parents may be among them.

    Raises:
        ClientError: if the endpoint fails.
    """
    try:
        Reports(target).apply([_entry(*pair) for pair in pairs])
    except UnsupportedFeatureError:
        return False
    except ClientError as error:
        if error.status not in _REFUSALS:
            raise
        return False
    return True


def in_batches(pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    """Yield providers in pieces that fit into a call."""
    for first in range(0, len(pairs), BATCH):
        yield pairs[first : first + BATCH]


def _entry(wanted: Provider, present: Provider | None) -> Mapping[str, Any]:
    parts = provider_differences(wanted, present)
    entry: dict[str, Any] = {"uuid": wanted.uuid}
    if present is None or "name" in parts or "parent" in parts:
        entry |= {"name": wanted.name, "parent_provider_uuid": wanted.parent}
    for part in ("inventories", "traits", "aggregates"):
        if part in parts or (present is None and getattr(wanted, part)):
            value = getattr(wanted, part)
            entry[part] = sorted(value) if isinstance(value, frozenset) else value
    return entry
