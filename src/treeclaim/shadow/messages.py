# SPDX-License-Identifier: Apache-2.0
"""A request to the Placement API, and an answer, as far as comparing needs them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked.

    Attributes:
        method: Of HTTP.
        path: With the query string.
    """

    method: str
    path: str

    @property
    def route(self) -> str:
        """Return the path without the query."""
        return self.path.partition("?")[0]

    @property
    def query(self) -> str:
        """Return the query, empty where there is none."""
        return self.path.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Response:
    """What an endpoint said.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        text: The body.
        document: The body as JSON, None where it is none.
    """

    status: int
    headers: Mapping[str, str]
    text: str
    document: Any
