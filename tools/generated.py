# SPDX-License-Identifier: Apache-2.0
"""Writes what follows from declarations: `python -m tools.generated`.

`docs/openapi.json` describes the operations. The modules `parameters.js` and `parts.js` of the pages list the
parameters of a query and the parts of a provider.
"""

import json
from collections.abc import Sequence
from typing import Any

from tests.paths import ROOT
from treeclaim.api.description.openapi import build_description
from treeclaim.api.routes import OPERATIONS
from treeclaim.forest.listing.texts import INCLUDABLE
from treeclaim.model.parts import ATTRIBUTES, LINKED_PARTS, ProviderPart
from treeclaim.model.query.parameters import QUERY_PARAMETERS, Grammar, QueryParameter

OPENAPI = ROOT / "docs" / "openapi.json"
_MODEL = ROOT / "src" / "treeclaim" / "ui" / "static" / "model"
PARAMETERS = _MODEL / "parameters.js"
PARTS = _MODEL / "parts.js"

_WIDTH = 101
"""Characters of a line of JavaScript, with its end."""

_HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// Written by `make generated` from %s.
"""
_PARAMETERS = """\
/**
 * Parameters of a query. `ofGroup`: the name may have a suffix. `again`: it may come more than
 * once. `flavorNumbers`: an extra spec may end in `:N`, so that a flavor has several. What is
 * left out is false.
 */
"""


def openapi() -> str:
    """Return the text of the description of the API."""
    return f"{json.dumps(build_description(OPERATIONS), indent=1)}\n"


def parameters() -> str:
    """Return the text of the module of parameters."""
    rows = "".join(map(_row, QUERY_PARAMETERS))
    head = _HEAD % "treeclaim/model/query/parameters.py" + _PARAMETERS
    return f"{head}export const PARAMETERS = Object.freeze({{\n{rows}}});\n"


def parts() -> str:
    """Return the text of the module of parts."""
    listed_parts: Sequence[ProviderPart[Any]] = (*LINKED_PARTS, ATTRIBUTES)
    lines = "".join(f"  {part.name}: {json.dumps(part.single)},\n" for part in listed_parts)
    return (
        f"{_HEAD % 'treeclaim/model/parts.py'}"
        f"export const INCLUDE = Object.freeze(\n  {json.dumps(INCLUDABLE)},\n);\n"
        f"export const LISTED_PARTS = Object.freeze({{\n{lines}}});\n"
    )


def _row(parameter: QueryParameter) -> str:
    """Return the member of a parameter, without false values."""
    is_choice = parameter.grammar is Grammar.CHOICE
    # Only the first value of a limit or a choice applies.
    is_scalar = is_choice or parameter.grammar is Grammar.NUMBER
    row = {
        "help": parameter.help,
        "ofGroup": parameter.of_group,
        "again": parameter.may_repeat and not is_scalar,
        "flavorNumbers": parameter.flavor_numbers,
        "choices": parameter.choices if is_choice else (),
    }
    members = [
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in row.items() if value
    ]
    line = f"  {parameter.name}: {{{', '.join(members)}}},\n"
    return line if len(line) <= _WIDTH else line.replace(f", {members[1]}", f",\n    {members[1]}")


if __name__ == "__main__":
    OPENAPI.write_text(openapi())
    PARAMETERS.write_text(parameters())
    PARTS.write_text(parts())
