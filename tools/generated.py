# SPDX-License-Identifier: Apache-2.0
"""Writes what follows from declarations: `python -m tools.generated`.

`docs/openapi.json` describes the operations; the table of rooms of `docs/architecture.md` has in its last
column what each imports; `docs/track-record.md` counts its classes; `parameters.js`, `flavor-members.js` and `parts.js` of the pages, which are served
without a build step, have the parameters of a query, the members of flavors and the parts of a provider.
"""

import json
from collections import Counter

from tests.paths import ROOT
from tools import rooms
from treeclaim.api.description.openapi import description
from treeclaim.api.routes import OPERATIONS
from treeclaim.client.requests.flavors import OTHERS, SIZES, SPECS
from treeclaim.client.requests.server_flavors import TRANSLATED
from treeclaim.forest.listing.texts import INCLUDABLE
from treeclaim.model.parts import LISTED_PARTS
from treeclaim.model.query_parameters import QUERY_PARAMETERS, Grammar, QueryParameter, Repeated

TRACK_RECORD = ROOT / "docs" / "track-record.md"
_BEGIN, _END = "<!-- classes -->\n", "\n<!-- end of classes -->"
OPENAPI = ROOT / "docs" / "openapi.json"
_MODEL = ROOT / "src" / "treeclaim" / "ui" / "static" / "model"
PARAMETERS = _MODEL / "parameters.js"
PARTS = _MODEL / "parts.js"
FLAVOR_MEMBERS = _MODEL / "flavor-members.js"

_HEAD_OF_PARTS = """\
// SPDX-License-Identifier: Apache-2.0
/** Parts of a provider, written by `make generated` from treeclaim/model/parts.py. */

/** What may be included in a list of providers. */
"""
_LISTED = """\
/** The parts but the inventories, by name: the word for one of what a provider has. */
"""
_HEAD = """\
// SPDX-License-Identifier: Apache-2.0
/**
 * Parameters of a query for candidates, written by `make generated` from
 * treeclaim/model/query_parameters.py.
 *
 * `ofGroup`: the name may have a suffix. `again`: it may come more than once. `flavorItems`: the word
 * before the suffix of an extra spec that is one item of a value. `flavorNumbers`: an extra spec may end
 * in `:N`, so that a flavor has several.
 */
"""

_MEMBERS = """\
// SPDX-License-Identifier: Apache-2.0
/**
 * Members of flavors, and extra specs in Nova's words, written by `make generated` from
 * treeclaim/client/requests/flavors.py and server_flavors.py.
 */
"""


def openapi() -> str:
    """Return the text of the description of the API."""
    return f"{json.dumps(description(OPERATIONS), indent=1)}\n"


def parameters() -> str:
    """Return the text of the module of parameters."""
    rows = "".join(
        f"  {parameter.name}: {json.dumps(_row(parameter), ensure_ascii=False)},\n"
        for parameter in QUERY_PARAMETERS
    )
    return f"{_HEAD}export const PARAMETERS = Object.freeze({{\n{rows}}});\n"


def parts() -> str:
    """Return the text of the module of parts."""
    linked = "".join(f"  {part.name}: {json.dumps(part.single)},\n" for part in LISTED_PARTS)
    return (
        f"{_HEAD_OF_PARTS}export const INCLUDE = Object.freeze({json.dumps(INCLUDABLE)});\n\n"
        f"{_LISTED}export const LISTED_PARTS = Object.freeze({{\n{linked}}});\n"
    )


def flavor_members() -> str:
    """Return the text of the module of members of flavors."""
    tables = {"SIZES": SIZES, "SPECS": SPECS, "OTHERS": OTHERS, "TRANSLATED": TRANSLATED}
    return _MEMBERS + "".join(
        f"export const {name} = Object.freeze({json.dumps(table)});\n"
        for name, table in tables.items()
    )


def _row(parameter: QueryParameter) -> dict[str, object]:
    row: dict[str, object] = {
        "ofGroup": parameter.of_group,
        "again": parameter.repeated is Repeated.ALL_COUNT,
        "flavorItems": parameter.flavor_items,
        "help": parameter.help,
    }
    if parameter.flavor_numbers:
        row["flavorNumbers"] = True
    if parameter.grammar is Grammar.CHOICE:
        row["choices"] = parameter.choices
    return row


def classes_of(page: str) -> Counter[str]:
    """Return how often each class of defects is in the track record."""
    rows = [line for line in page.splitlines() if line.startswith("| ")][2:]
    return Counter(row.split("|")[2].strip() for row in rows)


def track_record() -> str:
    """Return the text of the track record with its count of classes as it ought to be."""
    page = TRACK_RECORD.read_text()
    counts = classes_of(page)
    several = sorted((-count, name) for name, count in counts.items() if count > 1)
    lines = [f"- {-count} x {name}" for count, name in several]
    lines.append(f"- 1 x each of {len(counts) - len(several)} others")
    begin, _, rest = page.partition(_BEGIN)
    return f"{begin}{_BEGIN}{chr(10).join(lines)}{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    OPENAPI.write_text(openapi())
    PARAMETERS.write_text(parameters())
    PARTS.write_text(parts())
    rooms.PAGE.write_text(rooms.page())
    FLAVOR_MEMBERS.write_text(flavor_members())
    TRACK_RECORD.write_text(track_record())
