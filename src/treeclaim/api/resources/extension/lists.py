# SPDX-License-Identifier: Apache-2.0
"""Parts that the lists of the extension share (contract page 99, before section 1).

Their filters; how long pages are, where they begin, and the link to the next one. A marker says behind what
a page begins. What exists all along keeps its place in the order of the list, so it is on exactly one page.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from treeclaim.api.protocol.errors import ApiError, api_error, bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.schemas import MEMBER_OF, Schema, list_pattern, text
from treeclaim.api.protocol.texts import quote_value
from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.model.extension.holds import utc_of
from treeclaim.model.request import ProviderConditions

_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_NAME = "[A-Z0-9_]+"


def _one_or_several(item: str) -> Schema:
    return {"type": "string", "pattern": f"^({item}|in:{item}(,{item})*)$"}


UUIDS = _one_or_several(_UUID)
"""Schema of a filter by uuid, or `in:` several."""

CLASSES = _one_or_several(_NAME)
"""Schema of a filter by resource class, or `in:` several."""

TIME: Schema = {"type": "string", "maxLength": 64}
"""Schema of a time, which `time_of` reads."""


def time_of(query: Mapping[str, str], name: str) -> datetime | None:
    """Return a time that a filter names, naive UTC; None where it is not set.

    Raises:
        ApiError: 400 if it is not a time in the form of RFC 3339.
    """
    text = query.get(name)
    if text is None:
        return None
    moment = utc_of(text)
    if moment is None:
        raise bad_request(
            f"Invalid {name}: {quote_value(text)} is not a time in the form of RFC 3339."
        )
    return moment


def several(value: str | None) -> tuple[str, ...]:
    """Return the items of a filter that takes one or `in:` several; none where it is not set."""
    if value is None:
        return ()
    return tuple(dict.fromkeys(value.removeprefix("in:").split(",")))


def conditions_of(
    call: Call, pairs: Sequence[tuple[str, str]], query: Mapping[str, str]
) -> ProviderConditions:
    """Read `member_of`, `required` and `in_tree`, as page 20 has them.

    Raises:
        ApiError: 400.
    """
    membership = parameters.member_of(
        [value for name, value in pairs if name == "member_of"], call.version
    )
    traits = parameters.Traits.together(
        parameters.required(value, call.version) for name, value in pairs if name == "required"
    )
    return ProviderConditions(
        required=traits.required,
        forbidden=traits.forbidden,
        member_of=membership.member_of,
        forbidden_aggregates=membership.forbidden,
        in_tree=several(query.get("in_tree")),
    )


@contextmanager
def classes_named_by(parameter: str) -> Iterator[None]:
    """Answer 400 where a parameter names a resource class that does not exist."""
    try:
        yield
    except ResourceClassNotFoundError as error:
        raise api_error(
            error,
            prefix=f"Invalid resource class in {parameter} parameter: ",
            status=HTTPStatus.BAD_REQUEST,
        ) from error


SELECTION: dict[str, Schema] = {
    "resources": text(list_pattern(f"{_NAME}:[1-9][0-9]*")),
    "required": text(f"(in:{list_pattern(_NAME)}|{list_pattern(f'!?{_NAME}')})"),
    "member_of": MEMBER_OF,
}
"""Names have the form of those that may exist: others are refused, whatever else is asked."""

_BLANK = r"\s\x00-\x1f\x7f-\x9f"
"""Characters that are stripped from an element of a list: regular expressions differ about blanks."""

_ANY_TRAIT = f"[^!,{_BLANK}]([^,]*[^,{_BLANK}])?"
_ANY_SIGNED_TRAITS = f"(?!in:)!*{_ANY_TRAIT}(,!*{_ANY_TRAIT})*"

ANY_SELECTION: dict[str, Schema] = {
    "resources": text(list_pattern("[^:,]*:[1-9][0-9]*")),
    "required": text(f"(in:{list_pattern(_ANY_TRAIT)}|{_ANY_SIGNED_TRAITS})"),
    "member_of": MEMBER_OF,
}
"""The same in the list of page 20, where names of every form may stand: whether a name exists is not asked
where the other filters leave no provider."""

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
        raise unreadable(text) from error
    listed_kind, _, key = content.partition(":")
    if listed_kind != kind or not key:
        raise unreadable(text)
    return key


def number_marker_of(query: Mapping[str, str], kind: str) -> int:
    """Return the id behind which a page begins; 0 for the first one.

    Raises:
        ApiError: 400 if it cannot be read.
    """
    key = marker_of(query, kind) or "0"
    if not (key.isascii() and key.isdigit() and len(key) <= len(str(2**63 - 1))):
        raise unreadable(query["marker"])
    return min(int(key), 2**63 - 1)


def unreadable(text: str) -> ApiError:
    """Return the 400 for a marker."""
    return bad_request(f"Invalid marker: {quote_value(text)} was not given by this list.")


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
    filter_pairs = [(name, value) for name, value in pairs if name != "marker"]
    query = urlencode([*filter_pairs, ("marker", marker)], safe=":,!")
    return [{"rel": "next", "href": f"{path}?{query}"}]
