# SPDX-License-Identifier: Apache-2.0
"""Error bodies: JSON, HTML or plain text, as the client accepts (contract page 00, section 3).

The extension adds machine-readable details (page 98, section 6).
"""

import html
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from heapq import nlargest
from http import HTTPStatus
from itertools import takewhile
from typing import Any

from treeclaim.api.protocol.errors import DEADLINE, ERROR_RULES, UNDEFINED, ApiError, to_api_error
from treeclaim.api.protocol.negotiation import select_media_type
from treeclaim.api.protocol.texts import to_json
from treeclaim.model.errors import (
    ResourceClassNotFoundError,
    SearchGivenUpError,
    TraitsNotFoundError,
    TreeclaimError,
)
from treeclaim.model.extension.batch import EntryFault
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import one_line
from treeclaim.model.query.value_parsers import QueryError
from treeclaim.replica import Replica

_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")
"""Markup. A match ends before the next `<`, so that matching takes linear time."""

_OPENINGS = {
    HTTPStatus.BAD_REQUEST: (
        "The server could not comply with the request since it is either malformed or otherwise "
        "incorrect."
    ),
    HTTPStatus.NOT_FOUND: "The resource could not be found.",
    HTTPStatus.CONFLICT: "There was a conflict when trying to complete your request.",
}
"""The first sentences of errors, which clients match (contract page 00, section 6)."""

_LONGEST_DETAIL = 8_192
"""Most characters of an error's text. The validator's texts, which show schema and value, are mostly below 4,000
characters; clients match their beginning."""

_PLAIN = "text/plain"

_MOST_UNKNOWN, _MOST_COMPARED = 2, 400
"""Unknown names of an error with suggestions, and existing names compared with each: those with the longest common
prefix. Comparing names of the greatest length takes 50 ms."""

_MOST_SUGGESTIONS = 4
"""Faults of a batch with suggestions for unknown names."""


def render_error(
    error: ApiError, *, accept: str | None, version: Version | None, request_id: str
) -> tuple[str, bytes]:
    """Return the content type and the body of an error, in the media type that the client accepts.

    `version` is None if its negotiation failed.
    """
    media_type = select_media_type(accept, ("text/html", "application/json")) or _PLAIN
    errors = (error, *error.further_errors)
    if media_type == "application/json":
        documents = [_make_document(error, version, request_id) for error in errors]
        return media_type, to_json({"errors": documents})
    detail = "\n\n".join(map(_format_detail, errors))
    status_line = f"{error.status.value} {error.status.phrase}"
    if media_type == _PLAIN:
        return "text/plain; charset=UTF-8", f"{status_line}\n\n{detail}\n\n".encode()
    page = (
        f"<html>\n <head>\n  <title>{status_line}</title>\n </head>\n <body>\n"
        f"  <h1>{status_line}</h1>\n  {html.escape(detail, quote=False)}<br /><br />\n\n"
        " </body>\n</html>"
    )
    return "text/html; charset=UTF-8", page.encode()


def _format_detail(error: ApiError) -> str:
    return "\n\n ".join(
        part
        for part in (
            _OPENINGS.get(error.status),
            _TAG.sub("", one_line(error.detail, longest=_LONGEST_DETAIL)),
        )
        if part
    )


def _make_document(error: ApiError, version: Version | None, request_id: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "status": error.status.value,
        "title": error.status.phrase,
        "detail": _format_detail(error),
        "request_id": request_id,
        **error.members,
    }
    if version is not None and version.has(Feature.ERROR_CODES):
        document["code"] = error.code
    return document


def add_details(
    error: ApiError, cause: BaseException | None, version: Version | None, replica: Replica | None
) -> ApiError:
    """Add the details of the extension to an error, and return it.

    They are the member `conflict`, suggestions for unknown names, and the code of a deadline.

    Args:
        error: The error.
        cause: The exception that caused it, or None.
        version: The negotiated version; None if its negotiation failed.
        replica: The source of existing names; None for no suggestions.
    """
    if version is None or not version.is_extended:
        return error
    if isinstance(cause, SearchGivenUpError):
        error.code = DEADLINE
    elif error.status == HTTPStatus.CONFLICT:
        _add_conflict(error, cause)
    elif replica is not None and (suggestions := ", ".join(_suggest_names(cause, replica))):
        error.detail += f" Did you mean {suggestions}?"
    return error


def make_batch_error(faults: Sequence[EntryFault], version: Version, replica: Replica) -> ApiError:
    """Return the response to a batch with faulty entries: an error for each fault.

    An error with the lowest status comes first, and so is the status of the response.
    """
    errors = [
        _make_fault_error(fault, version, replica if number < _MOST_SUGGESTIONS else None)
        for number, fault in enumerate(faults)
    ]
    first_error = min(errors, key=lambda error: error.status)
    first_error.further_errors = tuple(error for error in errors if error is not first_error)
    return first_error


def _make_fault_error(fault: EntryFault, version: Version, replica: Replica | None) -> ApiError:
    # The unknown class is in the body, so the status is not 404.
    is_class = isinstance(fault.error, ResourceClassNotFoundError)
    status = HTTPStatus.BAD_REQUEST if is_class else None
    error = to_api_error(fault.error, f"providers[{fault.index}]: {fault.error}", status=status)
    return add_details(error, fault.error, version, replica)


def _suggest_names(cause: BaseException | None, replica: Replica) -> Iterator[str]:
    """Yield the existing names most similar to the first unknown classes or traits of an error."""
    while cause is not None:
        cause = cause.error if isinstance(cause, QueryError) else cause
        unknown_names: Sequence[str] = ()
        if isinstance(cause, ResourceClassNotFoundError):
            unknown_names = [cause.name]
        elif isinstance(cause, TraitsNotFoundError):
            unknown_names = cause.names[:_MOST_UNKNOWN]
        if unknown_names:
            try:
                with replica.borrow_forest() as forest:
                    is_trait = isinstance(cause, TraitsNotFoundError)
                    catalogue = forest.catalogue
                    known_names = list(
                        catalogue.traits if is_trait else catalogue.resource_classes
                    )
            except TreeclaimError:
                # The response has no suggestion.
                return
            for name in unknown_names:
                yield from _find_similar(name, known_names)
            return
        cause = cause.__cause__


def _find_similar(name: str, known_names: Sequence[str]) -> list[str]:
    """Return the most similar name, if any; comparing many thousands of names would take seconds."""

    def count_shared(known_name: str) -> int:
        pairs = zip(name, known_name, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return get_close_matches(name, nlargest(_MOST_COMPARED, known_names, count_shared), 1)


def _add_conflict(error: ApiError, cause: BaseException | None) -> None:
    while cause is not None:
        rule = ERROR_RULES.get(type(cause))
        conflict = None if rule is None else rule.describe_conflict(cause)
        if conflict is not None:
            if error.code == UNDEFINED:
                error.code = f"treeclaim.{conflict['kind']}"
            error.members = {**error.members, "conflict": conflict}
            return
        cause = cause.__cause__
