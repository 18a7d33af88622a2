# SPDX-License-Identifier: Apache-2.0
"""The file of [treeclaim]/metrics_of_flavors: queries by flavor (contract page 99, section 6)."""

from pathlib import Path
from typing import Any

import orjson

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.request.bodies import Body, BodyReader
from treeclaim.api.resources.candidates.queries import parse_request
from treeclaim.api.resources.placing.operations import NamedQueries
from treeclaim.model.microversions import NEWEST
from treeclaim.model.query.value_parsers import InvalidQueryError
from treeclaim.model.request import CandidateRequest

_MOST_BYTES = 1 << 20
"""Bytes of the file: 256 queries of 4 kB each."""


class FlavorFile(Body):
    """The queries by name of the flavor."""

    requests: NamedQueries


_FILE = BodyReader(FlavorFile)


class FlavorFileError(Exception):
    """The file is missing or invalid; the message has its path and the reason."""


def read_flavor_file(path: str, most_groups: int) -> dict[str, CandidateRequest]:
    """Read the queries of a file: `{"requests": {NAME: QUERY, …}}`, as in page 98, section 5.

    Raises:
        FlavorFileError: if the file is missing or invalid.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise FlavorFileError(f"{path}: it is longer than {_MOST_BYTES} bytes")
        document: Any = orjson.loads(text)
    except (OSError, ValueError) as error:
        raise FlavorFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        flavors: Any = _FILE.read(document)
    except ApiError as error:
        raise FlavorFileError(f"{path}: {error.detail}") from error
    return {
        name: _parse_query(f"{path}: requests.{name}", query, most_groups)
        for name, query in flavors.requests.items()
    }


def _parse_query(place: str, query: str, most_groups: int) -> CandidateRequest:
    try:
        request = parse_request(query, NEWEST, most_groups)
    except InvalidQueryError as error:
        raise FlavorFileError(f"{place}: {error}") from error
    if request.order is not None and request.order.mix_names:
        # The request would contain the mix at this time, but mixes change.
        raise FlavorFileError(f"{place}: the order of a measured flavor must not name a mix")
    return request
