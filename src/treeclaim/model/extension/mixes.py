# SPDX-License-Identifier: Apache-2.0
"""Mixes: what a cloud expects to be asked for (contract page 101, section 2)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from treeclaim.model.request import ByValue, CandidateRequest

NAME = "[A-Za-z0-9_.-]{1,64}"
"""Pattern of the names of mixes."""

_IS_NAME = re.compile(NAME)

MOST_REQUESTS = 64
"""Requests that a mix may have."""

MOST_WEIGHT = 1_000_000
"""The greatest weight of a request of a mix."""


def is_name(text: str) -> bool:
    """Tell whether a mix may have this name."""
    return _IS_NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class MixRequest:
    """A request of a mix.

    Attributes:
        request: What consumers want; it has no order, no limit, and draws from no hold.
        weight: How much it counts beside the others, 1 to `MOST_WEIGHT`.
    """

    request: CandidateRequest
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Mix(ByValue):
    """The requests that a cloud expects. Mixes are equal by value.

    Attributes:
        name: As queries have it.
        requests: By name, 1 to `MOST_REQUESTS`.
    """

    name: str
    requests: Mapping[str, MixRequest]
    _value: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def asks_for(self, resource_class: str) -> bool:
        """Tell whether any request asks for a class."""
        return resource_class in self.classes

    @property
    def classes(self) -> frozenset[str]:
        """Return the names of all classes that requests ask for."""
        return frozenset(
            name
            for mix_entry in self.requests.values()
            for group in mix_entry.request.groups
            for name in group.resources
        )
