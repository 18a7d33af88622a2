# SPDX-License-Identifier: Apache-2.0
"""Flavors whose number that still fits is measured: a file of queries (contract page 99, section 6)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.request.schemas import record
from treeclaim.api.protocol.request.validation import Checker
from treeclaim.api.resources.candidates.operations import request_of
from treeclaim.api.resources.placing.schemas import QUESTIONS
from treeclaim.model.microversions import EXTENSION_MAXIMUM, MAXIMUM
from treeclaim.model.request import CandidateRequest

_MOST_BYTES = 1 << 20
"""Bytes of the file: 256 queries of 4 kB each."""

_VERSION = replace(MAXIMUM, extension=EXTENSION_MAXIMUM)
_FILE = Checker(record({"requests": QUESTIONS}, {}))


class FlavorFileError(Exception):
    """The file cannot be used; the message says why, and names it."""


def flavors_in(path: str, most_groups: int) -> dict[str, CandidateRequest]:
    """Read the queries of a file: `{"requests": {NAME: QUERY, …}}`, as page 98, section 5, has them.

    Args:
        path: Of the file.
        most_groups: Most request groups of a query.

    Raises:
        FlavorFileError: if it is not there, or anything in it is wrong.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise FlavorFileError(f"{path}: it is longer than {_MOST_BYTES} bytes")
        document: Any = orjson.loads(text)
    except (OSError, ValueError) as error:
        raise FlavorFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    problem = _FILE.problem(document, length=len(text))
    if problem is not None:
        raise FlavorFileError(f"{path}: {problem}")
    requests: Mapping[str, str] = document["requests"]
    return {
        name: _request(f"{path}: requests.{name}", query, most_groups)
        for name, query in requests.items()
    }


def _request(where: str, query: str, most_groups: int) -> CandidateRequest:
    try:
        request = request_of(query, _VERSION, most_groups)
    except ApiError as error:
        raise FlavorFileError(f"{where}: {error.detail}") from error
    if request.order is not None and request.order.mix_names:
        # Mixes change at any time, and what is counted here would not.
        raise FlavorFileError(f"{where}: the order of a flavor that is measured names no mix")
    return request
