# SPDX-License-Identifier: Apache-2.0
"""Pages of lists: how long they are, where they begin, and the link to the next one.

Rules: contract page 99, before section 1. A marker says behind what a page begins. What exists
throughout keeps its place in the order of the list, so it is on exactly one page.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.protocol.texts import quoted

DEFAULT_LIMIT = 1_000
MOST = 10_000
"""Entries of a page."""

MOST_WITH_ALLOCATIONS = 1_000
"""Providers of a page with their allocations, of which a host may have hundreds."""

_LONGEST_MARKER = 1_024
"""Characters; the longest name that a list is ordered by has 255."""

PARAMETERS: dict[str, Schema] = {
    "limit": {"type": "string", "pattern": "^[1-9][0-9]{0,4}$"},
    "marker": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": _LONGEST_MARKER},
}
"""Schemas of the two parameters that every list has."""


def limit_of(query: Mapping[str, str], most: int = MOST) -> int:
    """Return how many entries a page may have.

    Raises:
        ApiError: 400 beyond the bound.
    """
    limit = int(query.get("limit", DEFAULT_LIMIT))
    if limit > most:
        raise bad_request(f"Invalid limit: {limit} is more than {most}.")
    return limit


def marker_of(query: Mapping[str, str], kind: str) -> str:
    """Return the key behind which a page begins; empty for the first one.

    Args:
        query: The parameters.
        kind: What the list is of; markers of other lists are refused.

    Raises:
        ApiError: 400 if it cannot be read.
    """
    text = query.get("marker")
    if text is None:
        return ""
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise _unreadable(text) from error
    listed, _, key = content.partition(":")
    if listed != kind or not key:
        raise _unreadable(text)
    return key


def number_marker_of(query: Mapping[str, str], kind: str) -> int:
    """Return the id behind which a page begins; 0 for the first one.

    Raises:
        ApiError: 400 if it cannot be read.
    """
    key = marker_of(query, kind) or "0"
    if not (key.isascii() and key.isdigit() and len(key) <= len(str(2**63 - 1))):
        raise _unreadable(query["marker"])
    return min(int(key), 2**63 - 1)


def _unreadable(text: str) -> ApiError:
    return bad_request(f"Invalid marker: {quoted(text)} was not given by this list.")


def links(
    path: str, pairs: Sequence[tuple[str, str]], kind: str, next_after: object | None
) -> list[dict[str, Any]]:
    """Return the links of a page: to the next one, with the same filters, where there is one.

    Args:
        path: The path of the list, with the mount prefix.
        pairs: The parameters of the request.
        kind: What the list is of.
        next_after: The key behind which the next page begins; None if there is none.
    """
    if next_after is None:
        return []
    marker = base64.urlsafe_b64encode(f"{kind}:{next_after}".encode()).rstrip(b"=").decode()
    others = [(name, value) for name, value in pairs if name != "marker"]
    query = urlencode([*others, ("marker", marker)], safe=":,!")
    return [{"rel": "next", "href": f"{path}?{query}"}]
