# SPDX-License-Identifier: Apache-2.0
"""All operations, found by path and method."""

import re
from collections.abc import Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import NamedTuple

from treeclaim.api import resources
from treeclaim.api.protocol.operations import Operation, list_operations

for module in walk_packages(resources.__path__, f"{resources.__name__}."):
    import_module(module.name)

OPERATIONS = list_operations()
"""All operations that the modules of `resources` declare."""


class Route(NamedTuple):
    """The operations of a path by method, and the variables of the path.

    A route that `needs_opt_in` exists only for requests that opt in to the extension.
    """

    operations: Mapping[str, Operation]
    arguments: Mapping[str, str]
    needs_opt_in: bool


_Table = dict[tuple[str, int], list[tuple[re.Pattern[str], dict[str, Operation], bool]]]
"""Paths by their first segment and their number of slashes: no variable contains a slash."""


def _make_key(path: str) -> tuple[str, int]:
    return path.split("/", 2)[1] if path.startswith("/") else "", path.count("/")


def _build_table() -> _Table:
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    table: _Table = {}
    for path, operations in by_path.items():
        opt_in = all(operation.needs_opt_in for operation in operations.values())
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
        entry = (re.compile(pattern, re.DOTALL), operations, opt_in)
        table.setdefault(_make_key(path), []).append(entry)
    return table


_ROUTES = _build_table()


def find_route(path: str) -> Route | None:
    """Find the operations of a path; a trailing slash matters (contract page 00, section 1)."""
    path = path or "/"
    for pattern, operations, needs_opt_in in _ROUTES.get(_make_key(path), ()):
        match = pattern.fullmatch(path)
        if match is not None:
            return Route(operations, match.groupdict(), needs_opt_in)
    return None
