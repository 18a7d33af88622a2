# SPDX-License-Identifier: Apache-2.0
"""All operations, found by path and method."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from treeclaim.api import (
    aggregates,
    allocations,
    candidates,
    explain,
    inventories,
    openapi,
    providers,
    reshaper,
    resource_classes,
    root,
    traits,
    usages,
)
from treeclaim.api.operations import Operation

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
    def is_extension(self) -> bool:
        """Tell whether the path exists only for who asked for the extension."""
        return any(one.extension for one in self.operations.values())


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
