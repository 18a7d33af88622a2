# SPDX-License-Identifier: Apache-2.0
"""The requests that both endpoints get.

Bodies may hold open places, which are filled in when the request is sent:
generations change with every write that went before, and a history from
which writes have been left out must still make sense.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from treeclaim.comparison import comparison

Body: TypeAlias = Any
"""JSON values, in which the open places below may stand for an integer or null."""


@dataclass(frozen=True, slots=True)
class ProviderGeneration:
    """The generation of a provider when the request is sent, plus an offset that makes it stale."""

    provider: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerGeneration:
    """The generation of a consumer when the request is sent, null where there is none.

    `wrong` replaces it by a number that cannot be right.
    """

    consumer: str
    wrong: bool = False


Open: TypeAlias = ProviderGeneration | ConsumerGeneration


@dataclass(frozen=True, slots=True)
class Request(comparison.Request):
    """A request; `minor` is the minor version, `path` includes the query string."""

    minor: int = 39
    body: Body = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Return whether the request writes."""
        return self.method != "GET"

    def __str__(self) -> str:
        text = f"{self.method} {self.path}  (1.{self.minor})"
        extra = "".join(f"  {name}: {value}" for name, value in self.headers.items())
        return text + extra + ("" if self.body is None else f"  {_readable(self.body)}")


def _readable(body: Body) -> str:
    return body if isinstance(body, str) else json.dumps(body, default=str)


def filled(body: Body, fill: Callable[[Open], int | None]) -> Body:
    """`body` with every open place filled in."""
    if isinstance(body, ProviderGeneration | ConsumerGeneration):
        return fill(body)
    if isinstance(body, dict):
        return {key: filled(value, fill) for key, value in body.items()}
    if isinstance(body, list):
        return [filled(value, fill) for value in body]
    return body
