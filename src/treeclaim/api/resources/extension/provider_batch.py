# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/providers, and its entries (contract page 99, section 8)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import (
    OR_NULL,
    AggregateUuid,
    AnyUuid,
    Body,
    BodyReader,
    ProviderUuid,
    ShortText,
    abbreviate,
    list_length,
    reject_repetition,
)
from treeclaim.api.protocol.request.schemas import Schema, Shape, mapping
from treeclaim.api.resources.inventories import INVENTORY, InventoryBody
from treeclaim.model.claim import Omission
from treeclaim.model.extension.batch import (
    MOST_PROBLEMS,
    BatchEntry,
    BatchResult,
    EntryOutcome,
)
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
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.providers.entries import write_entries

_MOST_MEMBERS = 30_000
"""Most members of a part in one entry."""

PART_SHAPES: Mapping[ProviderPart[Any], Shape] = {
    INVENTORIES: {str: INVENTORY},
    TRAITS: [str],
    AGGREGATES: [str],
    ATTRIBUTES: {str: bool | int | str},
    CONDITIONS: {
        str: {
            "effect": str,
            "until": str | None,
            "reason": str,
            "on_use": bool,
            "began": bool,
        }
    },
}
"""The parts of a provider in responses."""


def _check_name(name: str) -> str:
    if not is_attribute_name(name):
        raise ValueError(f"{abbreviate(name)} is not the name of an attribute")
    return name


def _read_value(value: Any) -> AttributeValue:
    if not is_attribute_value(value):
        raise ValueError(
            f"{abbreviate(value)} is not true, false, an integer from {-GREATEST_NUMBER} to {GREATEST_NUMBER}, "
            f"or a text of 1 to {LONGEST_TEXT} characters without control characters"
        )
    attribute_value: AttributeValue = value
    return attribute_value


_VALUE: Schema = {
    "type": ["boolean", "integer", "string"],
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
    """The desired state of a provider; absent members keep their values."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["uuid"]}, {"required": ["name"]}]}
    )

    uuid: ProviderUuid | None = None
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    generation: int | None = None
    parent_provider_uuid: AnyUuid | None = OR_NULL
    # Ignored; clients may send back a listed provider.
    root_provider_uuid: AnyUuid | None = OR_NULL
    inventories: (
        Annotated[dict[str, InventoryBody], Field(max_length=_MOST_MEMBERS, fail_fast=True)] | None
    ) = None
    traits: Annotated[tuple[ShortText, ...], list_length(0, _MOST_MEMBERS)] | None = None
    aggregates: (
        Annotated[
            tuple[AggregateUuid, ...],
            list_length(0, _MOST_MEMBERS),
            reject_repetition("an aggregate"),
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
        """Return the entry for a batch."""
        is_placed = "parent_provider_uuid" in self.model_fields_set
        values: dict[str, Any] = {}
        if self.inventories is not None:
            values[INVENTORIES.name] = {
                name: body.read() for name, body in self.inventories.items()
            }
        for part in PARTS:
            if part is not INVENTORIES and (value := getattr(self, part.name)) is not None:
                values[part.name] = part.from_json(value)
        return BatchEntry(
            self.uuid,
            self.name,
            self.parent_provider_uuid if is_placed else Omission.OMITTED,
            self.generation,
            values,
        )


_MOST_ENTRIES = 1_000
"""Providers in one call."""

_ENTRY = BodyReader(ProviderEntry)


class BatchBody(Body):
    """Desired states of providers; `read_entries` validates each entry, to report all faults."""

    providers: Annotated[
        tuple[dict[str, Any], ...],
        list_length(1, _MOST_ENTRIES),
        WithJsonSchema(
            {"type": "array", "minItems": 1, "maxItems": _MOST_ENTRIES, "items": _ENTRY.schema}
        ),
    ]
    create_names: bool = False
    dry_run: bool = False


_OUTCOMES: Shape = {
    "providers": [{"uuid": str, "generation": int, "result": BatchResult, "changed": [str]}]
}
"""The outcome of each entry, in the order of the request."""

_RULES_OF_NAMES = ("placement:traits:update", "placement:resource_classes:update")


class _DryRunError(Exception):
    """Rolls back the transaction of a dry run, and carries its outcome."""

    def __init__(self, outcomes: Sequence[EntryOutcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


@operation(
    "POST /treeclaim/providers",
    policy="placement:resource_providers:list",
    shows=_OUTCOMES,
    has_cache_headers=False,
)
def apply_providers(call: Call, body: BatchBody) -> Answer:
    """Create or change many resource providers, all or none."""
    _require_allowed(call, body)
    read_bodies = read_entries(call, body.providers)
    entries = [entry.read() for entry in call.deadline.each(read_bodies)]
    outcomes = _apply(call, entries, create_names=body.create_names, dry_run=body.dry_run)
    return {"providers": outcomes}


def _apply(
    call: Call, entries: Sequence[BatchEntry], *, create_names: bool, dry_run: bool
) -> Sequence[EntryOutcome]:
    def apply_entries(transaction: WriteTransaction) -> Sequence[EntryOutcome]:
        outcomes = write_entries(transaction, entries, call.is_allowed, create_names=create_names)
        if dry_run:
            raise _DryRunError(outcomes)
        return outcomes

    try:
        return call.services.store.write(apply_entries)
    except _DryRunError as dry_run_end:
        return dry_run_end.outcomes


def _require_allowed(call: Call, body: BatchBody) -> None:
    named_parts = set().union(*body.providers)
    for part in PARTS:
        if part.name in named_parts:
            call.require_allowed(part.write_rule)
    if body.create_names:
        for rule in _RULES_OF_NAMES:
            call.require_allowed(rule)


def read_entries(
    call: Call, documents: Sequence[Mapping[str, Any]], reader: BodyReader = _ENTRY
) -> list[Any]:
    """Parse the entries of a batch into the model of a reader.

    Raises:
        ApiError: 400 with an error for each faulty entry.
        RequestGivenUpError: if the deadline has passed.
    """
    entries, faults = [], []
    for index, document in enumerate(call.deadline.each(documents)):
        try:
            entries.append(reader.read(document))
        except ApiError as error:
            faults.append(bad_request(f"providers[{index}]: {error.detail}"))
        if len(faults) == MOST_PROBLEMS:
            break
    if faults:
        raise ApiError(faults[0].status, faults[0].detail, further_errors=faults[1:])
    return entries
