# SPDX-License-Identifier: Apache-2.0
"""Names in entries, in which places such as `{n}` and `{parent}` are filled in."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from treeclaim.model.parts import INVENTORIES, Values

PLACES = re.compile(r"\{\{|\}\}|\{n(?::0([1-9])d?)?\}|\{parent\}|[{}]")
"""Places, doubled braces, and single ones, which are faults."""


def as_written(name: str) -> str:
    """Return a name in the form of an entry, in which braces are doubled."""
    return name.replace("{", "{{").replace("}", "}}")


def filled_in(name: str, number: int, parent: str) -> str:
    """Return a name with its places filled in."""

    def text(match: re.Match[str]) -> str:
        place = match[0]
        if place in ("{{", "}}"):
            return place[0]
        return parent if place == "{parent}" else str(number).zfill(int(match[1] or 0))

    return PLACES.sub(text, name)


def rename_consumed(values: Values, rename: Callable[[str], str]) -> Values:
    """Return the values of an entry with other names of the providers from which its inventories consume."""
    stock = INVENTORIES.or_empty(values)
    if not any(fields.get("consumes") for fields in stock.values()):
        return values
    renamed = {
        name: {**fields, "consumes": _rename_entries(fields["consumes"], rename)}
        if fields.get("consumes")
        else fields
        for name, fields in stock.items()
    }
    return {**values, INVENTORIES.name: renamed}


def _rename_entries(
    entries: Iterable[Mapping[str, Any]], rename: Callable[[str], str]
) -> list[dict[str, Any]]:
    renamed = [{**entry, "provider": rename(entry["provider"])} for entry in entries]
    return sorted(renamed, key=lambda entry: (entry["provider"], entry["resource_class"]))
