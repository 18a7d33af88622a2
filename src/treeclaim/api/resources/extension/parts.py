# SPDX-License-Identifier: Apache-2.0
"""The parts of a provider in the documents of bulk reads and writes (page 99)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from treeclaim.api.protocol.request.bodies import (
    OR_NULL,
    AggregateUuid,
    AnyUuid,
    Body,
    ProviderUuid,
    ShortText,
    different,
    items,
    shown_value,
)
from treeclaim.api.protocol.request.schemas import (
    BOOLEAN,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    Schema,
    mapping,
    record,
)
from treeclaim.api.protocol.request.validation import MOST_VALUES
from treeclaim.api.resources.inventories.schemas import FIELDS, InventoryBody
from treeclaim.model.claim import Omission
from treeclaim.model.extension.batches.batch import BatchEntry
from treeclaim.model.parts import (
    AGGREGATES,
    ATTRIBUTES,
    CONDITIONS,
    INVENTORIES,
    PARTS,
    TRAITS,
    ProviderPart,
)
from treeclaim.model.provider import (
    GREATEST_NUMBER,
    LONGEST_TEXT,
    MOST_ATTRIBUTES,
    NAME_PATTERN,
    TEXT_PATTERN,
    AttributeValue,
    is_attribute_name,
    is_attribute_value,
)

_KINDS: Schema = {"type": ["boolean", "integer", "string"]}

SHOWN: Mapping[ProviderPart[Any], Schema] = {
    INVENTORIES: mapping(".*", FIELDS),
    TRAITS: STRINGS,
    AGGREGATES: STRINGS,
    ATTRIBUTES: mapping(".*", _KINDS),
    CONDITIONS: mapping(
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
    ),
}


def _check_name(name: str) -> str:
    if not is_attribute_name(name):
        raise ValueError(f"{shown_value(name)} is not the name of an attribute")
    return name


def _read_value(value: Any) -> AttributeValue:
    if not is_attribute_value(value):
        raise ValueError(
            f"{shown_value(value)} is not true, false, an integer from {-GREATEST_NUMBER} to {GREATEST_NUMBER}, "
            f"or a text of 1 to {LONGEST_TEXT} characters without control characters"
        )
    kept: AttributeValue = value
    return kept


_VALUE: Schema = _KINDS | {
    "minimum": -GREATEST_NUMBER,
    "maximum": GREATEST_NUMBER,
    "minLength": 1,
    "maxLength": LONGEST_TEXT,
    "pattern": TEXT_PATTERN,
}

AttributeValues = Annotated[
    dict[
        Annotated[str, AfterValidator(_check_name)],
        Annotated[Any, PlainValidator(_read_value)],
    ],
    Field(max_length=MOST_ATTRIBUTES),
    WithJsonSchema(mapping(NAME_PATTERN, _VALUE) | {"maxProperties": MOST_ATTRIBUTES}),
]
"""Attributes by name (contract page 102, section 1)."""


class AttributesBody(Body):
    """The attributes of a provider."""

    resource_provider_generation: int
    attributes: AttributeValues


class ProviderEntry(Body):
    """The wanted state of a provider; absent members keep their values."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["uuid"]}, {"required": ["name"]}]}
    )

    uuid: ProviderUuid | None = None
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    generation: int | None = None
    parent_provider_uuid: AnyUuid | None = OR_NULL
    # It follows from the parent; what was listed may be sent back.
    root_provider_uuid: AnyUuid | None = OR_NULL
    inventories: (
        Annotated[dict[str, InventoryBody], Field(max_length=MOST_VALUES, fail_fast=True)] | None
    ) = None
    traits: Annotated[tuple[ShortText, ...], items(0, MOST_VALUES)] | None = None
    aggregates: (
        Annotated[
            tuple[AggregateUuid, ...],
            items(0, MOST_VALUES),
            different("an aggregate"),
            Field(json_schema_extra={"uniqueItems": True}),
        ]
        | None
    ) = None
    attributes: AttributeValues | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_named(cls, value: Any) -> Any:
        if isinstance(value, dict) and not {"uuid", "name"} & value.keys():
            raise ValueError("'uuid' or 'name' is required")
        return value

    def read(self) -> BatchEntry:
        """Return the entry of a batch."""
        is_placed = "parent_provider_uuid" in self.model_fields_set
        values: dict[str, Any] = {}
        if self.inventories is not None:
            values[INVENTORIES.name] = {
                name: body.read() for name, body in self.inventories.items()
            }
        for part in PARTS:
            if part is not INVENTORIES and (value := getattr(self, part.name)) is not None:
                values[part.name] = part.read(value)
        return BatchEntry(
            self.uuid,
            self.name,
            self.parent_provider_uuid if is_placed else Omission.OMITTED,
            self.generation,
            values,
        )
