# SPDX-License-Identifier: Apache-2.0
"""The parts of a provider in the documents of bulk reads and writes (page 99)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.api.protocol.request.schemas import (
    BOOLEAN,
    SHORT_TEXT,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    UUID,
    Schema,
    mapping,
    record,
)
from treeclaim.api.resources.inventories.operations import inventory_of
from treeclaim.api.resources.inventories.schemas import FIELDS, all_inventories
from treeclaim.model.attributes import (
    GREATEST_NUMBER,
    LONGEST_TEXT,
    MOST_ATTRIBUTES,
    NAME_PATTERN,
    TEXT_PATTERN,
)
from treeclaim.model.microversions import NEWEST, Version
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, INVENTORIES, TRAITS, ProviderPart

CONDITIONS_SHOWN = mapping(
    ".*",
    record(
        {
            "effect": STRING,
            "until": TEXT_OR_NULL,
            "reason": STRING,
            "on_use": BOOLEAN,
            "began": BOOLEAN,
        }
    ),
)
"""Schema of what clients get of the conditions."""


@dataclass(frozen=True, slots=True)
class PartForm:
    """The documents of a part.

    Attributes:
        given: Schema of what clients send, that of the part's own URL.
        shown: Schema of what they get.
        value: Returns the value that a batch has for what was sent.
    """

    given: Schema
    shown: Schema
    value: Callable[[Any], Any]


_KINDS: Schema = {"type": ["boolean", "integer", "string"]}
_ATTRIBUTE: Schema = _KINDS | {
    "minimum": -GREATEST_NUMBER,
    "maximum": GREATEST_NUMBER,
    "minLength": 1,
    "maxLength": LONGEST_TEXT,
    "pattern": TEXT_PATTERN,
}
"""A value (contract page 102, section 1)."""

PART_FORMS: Mapping[ProviderPart[Any], PartForm] = {
    INVENTORIES: PartForm(
        all_inventories(NEWEST)["properties"]["inventories"],
        mapping(
            ".*",
            FIELDS,
        ),
        lambda given: {name: inventory_of(fields) for name, fields in given.items()},
    ),
    TRAITS: PartForm({"type": "array", "items": SHORT_TEXT}, STRINGS, TRAITS.read),
    AGGREGATES: PartForm(
        {"type": "array", "items": UUID, "uniqueItems": True}, STRINGS, AGGREGATES.read
    ),
    ATTRIBUTES: PartForm(
        mapping(NAME_PATTERN, _ATTRIBUTE) | {"maxProperties": MOST_ATTRIBUTES},
        mapping(".*", _KINDS),
        ATTRIBUTES.read,
    ),
}
"""Forms by part, in the order of `PARTS`."""


def given_at(part: ProviderPart[Any], version: Version) -> Schema:
    """Return the schema of what clients of a version send of a part."""
    if part is INVENTORIES:
        inventories: Schema = all_inventories(version)["properties"]["inventories"]
        return inventories
    return PART_FORMS[part].given
