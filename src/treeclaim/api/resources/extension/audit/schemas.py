# SPDX-License-Identifier: Apache-2.0
"""What the operations of the audit take (contract page 99, section 5)."""

from typing import Any

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.patterns import ANY_UUID
from treeclaim.api.protocol.request.schemas import (
    INTEGER,
    STRINGS,
    TEXT_OR_NULL,
    UUID,
    mapping,
    record,
)
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.extension.audit import OF_HOLDS, FindingKind
from treeclaim.model.inventory import MAXIMUM_INTEGER
from treeclaim.model.microversions import ExtensionFeature, Version
from treeclaim.store.audit.leftovers import PARTS

PATH = "/treeclaim/audit"
REPAIRS_PATH = f"{PATH}/repairs"

MOST_ITEMS = 1_000
"""Of each kind in an answer."""

DEFAULT_ITEMS = 100

MOST_REPAIRS = 1_000
"""In one call."""

DEFAULT_AGE = 3_600
"""Seconds since its newest allocation after which a consumer that is not listed is an orphan: a
server that is being built holds something before anybody lists it."""

_OLDEST = 10**9
"""Seconds: thirty years."""

_TYPES = "^([A-Z0-9_]{1,255}|unknown)$"
_BOOLEAN: Schema = {"type": "boolean"}


def kinds_at(version: Version) -> tuple[FindingKind, ...]:
    """Return the kinds of findings that a client knows."""
    knows_holds = version.brings(ExtensionFeature.HOLDS)
    return tuple(kind for kind in FindingKind if knows_holds or kind not in OF_HOLDS)


def query(version: Version) -> Schema:
    """Return the schema of the query."""
    kinds = f"({'|'.join(kinds_at(version))})"
    return record(
        {},
        {
            "kind": {"type": "string", "pattern": f"^{kinds}(,{kinds})*$"},
            "limit": {"type": "string", "pattern": "^([1-9][0-9]{0,2}|1000)$"},
        },
    )


def living(_version: Version) -> Schema:
    """Return the schema of the list of who lives; `living_uuids` reads the uuids in it.

    There may be hundreds of thousands, and a validator looks at no clock.
    """
    return record(
        {"living": mapping(_TYPES, STRINGS)},
        {"older_than": {"type": "integer", "minimum": 0, "maximum": _OLDEST}},
    )


def with_uuids(schema: Any) -> Any:
    """Say in a copy of the schema of the list of who lives what its texts are."""
    schema["properties"]["living"]["patternProperties"][_TYPES] = {
        "type": "array",
        "items": dict(ANY_UUID),
    }
    return schema


def _item(kind: FindingKind, members: dict[str, Schema]) -> Schema:
    named: dict[str, Schema] = {"kind": {"const": kind.value}}
    return record(named | members)


_REPAIRS: dict[FindingKind, Schema] = {
    kind: _item(kind, members)
    for kind, members in (
        (
            FindingKind.WITHOUT_PROVIDER,
            {
                "table": {"enum": list(PARTS)},
                "provider_id": INTEGER | {"minimum": 0, "maximum": MAXIMUM_INTEGER},
            },
        ),
        (FindingKind.WITHOUT_CONSUMER, {"consumer": UUID}),
        (FindingKind.EMPTY_CONSUMER, {"consumer": UUID}),
        (FindingKind.BROKEN_ROOT, {"provider": UUID}),
        (FindingKind.UNUSED_AGGREGATE, {"uuid": UUID}),
        (FindingKind.EXPIRED_HOLD, {"consumer": UUID}),
        (FindingKind.BROKEN_HOLD, {"consumer": UUID}),
        (
            FindingKind.BROKEN_DRAW,
            {
                "consumer": UUID,
                "provider": {"anyOf": [UUID, {"type": "null"}]},
                "resource_class": TEXT_OR_NULL,
                "drawn": INTEGER,
                "used": INTEGER,
            },
        ),
        (FindingKind.ORPHANED, {"consumer": UUID, "consumer_generation": INTEGER}),
    )
}


def repairs(version: Version) -> Schema:
    """Return the schema of a list of repairs."""
    known = kinds_at(version)
    repair = {"oneOf": [item for kind, item in _REPAIRS.items() if kind in known]}
    return record(
        {"repairs": {"type": "array", "items": repair, "minItems": 1, "maxItems": MOST_REPAIRS}},
        {"dry_run": _BOOLEAN},
    )


QUERY = Versioned(query)
LIVING = Versioned(living)
REPAIRS = Versioned(repairs)
