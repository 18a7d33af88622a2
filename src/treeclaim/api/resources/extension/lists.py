# SPDX-License-Identifier: Apache-2.0
"""Filters, pages and links of the lists of the extension (contract page 99, before section 1).

A marker contains the key after which a page begins, so an entry that exists during the whole traversal is on exactly
one page.
"""

import base64
from collections.abc import Sequence
from http import HTTPStatus
from inspect import get_annotations
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from pydantic import Field, WithJsonSchema

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.operations import Answer, Call, Refusal
from treeclaim.api.protocol.request.bodies import Body
from treeclaim.api.protocol.request.query_models import READ_INTEGER, Membership, Traits, Uuids
from treeclaim.api.protocol.request.schemas import LINKS, Shape, text
from treeclaim.model.changes import Cursor, write_cursor
from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.model.names import quote_value
from treeclaim.model.request import ProviderConditions

_GREATEST_ID = 2**63 - 1

Filter = TypeVar("Filter")


class ListQuery(Body):
    """The parameters of every list."""

    limit: Annotated[int, Field(ge=1, le=10_000), READ_INTEGER] = 1_000
    marker: Annotated[str, WithJsonSchema(text("[A-Za-z0-9_-]+"))] | None = None

    def read_marker(self, kind: str) -> str:
        """Return the key after which the page begins; empty for the first page.

        Raises:
            ApiError: 400 for an invalid marker, or a marker of a list of another kind.
        """
        if self.marker is None:
            return ""
        padding = "=" * (-len(self.marker) % 4)
        try:
            content = base64.b64decode(self.marker + padding, b"-_", validate=True).decode()
        except ValueError as error:
            raise self.make_marker_error() from error
        listed_kind, _, key = content.partition(":")
        if listed_kind != kind or not key:
            raise self.make_marker_error()
        return key

    def read_id_marker(self, kind: str) -> int:
        """Return the id after which the page begins, as `read_marker`; 0 for the first page."""
        key = self.read_marker(kind) or "0"
        if not (key.isascii() and key.isdigit() and len(key) <= len(str(_GREATEST_ID))):
            raise self.make_marker_error()
        return min(int(key), _GREATEST_ID)

    def to_filter(self, make: type[Filter], kind: str) -> Filter:
        """Return a filter of the store; its fields are named as the parameters, and `after`."""
        values = {**dict(self), "after": self.read_marker(kind)}
        return make(**{name: values[name] for name in get_annotations(make)})

    def make_marker_error(self) -> ApiError:
        """Return the 400 for the marker."""
        return bad_request(
            f"Invalid marker: {quote_value(self.marker)} was not issued by this list."
        )


class SelectionQuery(ListQuery):
    """The filters of providers on page 20."""

    in_tree: Uuids = ()
    member_of: Membership = ProviderConditions()
    required: Traits = ProviderConditions()

    @property
    def conditions(self) -> ProviderConditions:
        """Return the conditions for matching providers."""
        trees = ProviderConditions(in_tree=self.in_tree)
        return ProviderConditions.together([self.required, self.member_of, trees])


def refuse_unknown_class(parameter: str) -> Refusal:
    """Return the 400 for an unknown resource class in a parameter."""
    return Refusal(
        f"Invalid resource class in {parameter} parameter: {{error}}",
        ResourceClassNotFoundError,
        status=HTTPStatus.BAD_REQUEST,
    )


def make_page_shape(kind: str, entry: Shape) -> Shape:
    """Return the shape of a page of entries."""
    return {kind: [entry], "cursor": str, "links": LINKS}


def make_page(
    call: Call, kind: str, entries: Sequence[object], cursor: Cursor, next_after: object | None
) -> Answer:
    """Return a page of entries; see `make_links`."""
    return {
        kind: entries,
        "cursor": write_cursor(cursor),
        "links": make_links(call, kind, next_after),
    }


def make_links(call: Call, kind: str, next_after: object | None) -> list[dict[str, Any]]:
    """Return the link to the next page, which begins after the key `next_after`; none for the last page."""
    if next_after is None:
        return []
    marker = base64.urlsafe_b64encode(f"{kind}:{next_after}".encode()).rstrip(b"=").decode()
    filter_pairs = [(name, value) for name, value in call.read_query() if name != "marker"]
    query = urlencode([*filter_pairs, ("marker", marker)], safe=":,!")
    return [{"rel": "next", "href": f"{call.link(call.request.path)}?{query}"}]
