# SPDX-License-Identifier: Apache-2.0
"""Queries of files, and mixes of them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.resources.candidates.operations import request_of
from treeclaim.api.resources.candidates.order_parameters import with_mixes
from treeclaim.model.extension.mixes import MOST_REQUESTS, MOST_WEIGHT, Mix, MixRequest
from treeclaim.model.microversions import MAXIMUM, ExtensionFeature
from treeclaim.model.request import CandidateRequest
from treeclaim.replay.events import problem, quoted, text_of

_VERSION = replace(MAXIMUM, extension=max(ExtensionFeature))
_MOST_GROUPS = 128
_LONGEST_QUERY = 256 * 1024

USUAL = "none"
"""Stands for the usual order of candidates."""


def parsed(
    where: tuple[Path | str, int], query: object, order: str | None = None
) -> CandidateRequest:
    """Read a query of a file.

    Args:
        where: The file and the line.
        query: Its text, as it stands there.
        order: What `order_by` is to be instead of what the query says; None for that.

    Raises:
        ReplayError: if it is none, or cannot be ordered so.
    """
    if not isinstance(query, str) or len(query) > _LONGEST_QUERY:
        raise problem(*where, f"{quoted(query)} is no query")
    text = query
    if order is not None:
        kept = [part for part in query.split("&") if not part.startswith("order_by=")]
        given = [] if order == USUAL else [f"order_by={quote(order, safe=':,*')}"]
        text = "&".join([*kept, *given])
    try:
        request = request_of(text, _VERSION, _MOST_GROUPS)
    except ApiError as error:
        raise problem(*where, error.detail) from error
    if request.from_holds:
        raise problem(*where, "there are no holds to draw from (from_holds)")
    if not any(group.resources for group in request.groups):
        raise problem(*where, "it asks for no resources")
    return request


def with_mix(
    where: tuple[Path | str, int], request: CandidateRequest, mix: Mix | None
) -> CandidateRequest:
    """Return a request that knows the mix which its order may name.

    Raises:
        ReplayError: if it names another one, or a class that no request of it asks for.
    """
    try:
        return with_mixes(request, {} if mix is None else {mix.name: mix})
    except ApiError as error:
        raise problem(*where, error.detail) from error


def mix_of(file: Path) -> Mix:
    """Read the body of `PUT /treeclaim/mixes/{name}`; the mix is named as the file.

    Raises:
        ReplayError: if it is none.
    """
    try:
        document = json.loads(text_of(file))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        raise problem(file, line, "this is not JSON") from error
    requests = document.get("requests") if isinstance(document, dict) else None
    if not isinstance(requests, dict) or not 0 < len(requests) <= MOST_REQUESTS:
        raise problem(
            file, 0, f"a member 'requests' with 1 to {MOST_REQUESTS} requests is expected"
        )
    return Mix(file.stem, {name: _asked(file, name, given) for name, given in requests.items()})


def _asked(file: Path, name: str, given: Any) -> MixRequest:
    members: Mapping[str, Any] = given if isinstance(given, dict) else {}
    weight = members.get("weight")
    if not isinstance(weight, int) or isinstance(weight, bool) or not 0 < weight <= MOST_WEIGHT:
        raise problem(file, 0, f"request {quoted(name)}: weight is 1 to {MOST_WEIGHT}")
    request = parsed((file, 0), members.get("query"))
    if request.order is not None or request.limit is not None:
        raise problem(
            file, 0, f"request {quoted(name)}: a mix has no order_by, preferred and limit"
        )
    return MixRequest(request, weight)
