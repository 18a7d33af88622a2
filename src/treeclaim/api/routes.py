# SPDX-License-Identifier: Apache-2.0
"""All operations, found by path and method."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from treeclaim.api.protocol.operations import Operation
from treeclaim.api.resources.aggregates import handlers as aggregates
from treeclaim.api.resources.allocations import handlers as allocations
from treeclaim.api.resources.candidates import explain
from treeclaim.api.resources.candidates import handlers as candidates
from treeclaim.api.resources.classes import handlers as resource_classes
from treeclaim.api.resources.extension.holders import handlers as holders
from treeclaim.api.resources.extension.listing import handlers as listing
from treeclaim.api.resources.extension.totals import handlers as totals
from treeclaim.api.resources.inventories import handlers as inventories
from treeclaim.api.resources.providers import handlers as providers
from treeclaim.api.resources.reshaper import handlers as reshaper
from treeclaim.api.resources.service import openapi, root
from treeclaim.api.resources.traits import handlers as traits
from treeclaim.api.resources.usages import handlers as usages

OPERATIONS: tuple[Operation, ...] = (
    *root.OPERATIONS,
    *providers.OPERATIONS,
    *inventories.OPERATIONS,
    *aggregates.OPERATIONS,
    *traits.OPERATIONS,
    *resource_classes.OPERATIONS,
    *allocations.OPERATIONS,
    *usages.OPERATIONS,
    *candidates.OPERATIONS,
    *explain.OPERATIONS,
    *reshaper.OPERATIONS,
    *listing.OPERATIONS,
    *holders.OPERATIONS,
    *totals.OPERATIONS,
    *openapi.OPERATIONS,
)


@dataclass(frozen=True, slots=True)
class Route:
    """A path that was found.

    Attributes:
        operations: By method.
        arguments: The variables of the path.
    """

    operations: Mapping[str, Operation]
    arguments: Mapping[str, str]

    @property
    def extension(self) -> int | None:
        """Return the extension's version from which the path exists, None if it is no part of it."""
        since = [one.extension for one in self.operations.values() if one.extension is not None]
        return min(since) if len(since) == len(self.operations) else None


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)), re.DOTALL)


def _table() -> list[tuple[re.Pattern[str], dict[str, Operation]]]:
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    return [(_pattern(path), operations) for path, operations in by_path.items()]


_ROUTES = _table()


def find(path: str) -> Route | None:
    """Find a path; no trailing slash is tolerated (contract page 00, section 1)."""
    for pattern, operations in _ROUTES:
        match = pattern.fullmatch(path or "/")
        if match is not None:
            return Route(operations, match.groupdict())
    return None
