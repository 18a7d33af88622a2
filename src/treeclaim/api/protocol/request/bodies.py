# SPDX-License-Identifier: Apache-2.0
"""Bodies of the extension as pydantic models, which define schema, reader and error texts.

An error text contains the place of a value, the value and the expected form; for an unknown member, the most similar
name.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.request.schemas import (
    ANY_UUID,
    CLASS_NAME,
    DASHED_UUID,
    MOST_NAMED,
    PROVIDER_KEY,
    QUERY,
    TYPE_NAME,
    Schema,
    transform,
)
from treeclaim.model.claim import MOST_SOURCES
from treeclaim.model.microversions import Version
from treeclaim.model.names import normalised_uuid, quote_value, unknown_word
from treeclaim.model.provider import CONDITION_KEY, MAXIMUM_INTEGER

_MOST_DOMAINS = 1_000
_MOST_PARTS = 10_000

_EXPECTED_KINDS = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
    "frozen_set_type": "a list",
    "int_type": "an integer",
    "list_type": "a list",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "string_type": "a text",
    "tuple_type": "a list",
}
"""Expected values, by pydantic's types of errors."""

_PROBLEM_TEXTS = {
    "greater_than_equal": "{value} is less than {ge}",
    "less_than_equal": "{value} is more than {le}",
    "string_too_long": "a text of more than {max_length} characters",
    "string_too_short": "a text of fewer than {min_length} characters",
    "too_long": "{actual_length} are more than {max_length}",
    "too_short": "{actual_length} are fewer than {min_length}",
    "enum": "{value} is not one of {expected}",
    "literal_error": "{value} is not one of {expected}",
    "union_tag_invalid": "{tag!r} is not one of {expected_tags}",
    "union_tag_not_found": "{discriminator} is required",
    "value_error": "{error}",
}
"""Problems of values, by pydantic's types of errors."""

_MEMBER = re.compile(r"<\w+\.\w+: ('\w+')>")
"""A member of an enumeration in pydantic's texts."""

_EXPECTED_FORMS = {
    CLASS_NAME: "a name of capital letters, digits and _",
    TYPE_NAME: "the name of a consumer type",
    PROVIDER_KEY: "a UUID with dashes",
    str(DASHED_UUID["pattern"]): "a UUID with dashes",
    f"^{CONDITION_KEY}$": "a key of 1 to 63 capital letters, digits and _",
}
"""Expected texts, by their patterns."""


class Body(BaseModel):
    """An object in a body. A member whose default is None may be absent, but not null."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_members(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        bounds = _read_bounds(cls)
        for name, member in value.items():
            if name not in bounds:
                raise ValueError(quote_value(unknown_word(quote_value(name), bounds)))
            may_be_null, most_members = bounds[name]
            if member is None and not may_be_null:
                raise ValueError(f"{name!r} is null; omit it")
            # pydantic would validate all members of a mapping before it counts them.
            if most_members and isinstance(member, dict) and len(member) > most_members:
                raise ValueError(f"{name}: {len(member)} are more than {most_members}")
        return value


@cache
def _read_bounds(model: type[Body]) -> Mapping[str, tuple[bool, int]]:
    """Return whether each member may be null, and its greatest length; 0 for no bound."""
    return {
        field.alias or name: (
            field.default is not None,
            max((getattr(bound, "max_length", 0) for bound in field.metadata), default=0),
        )
        for name, field in model.model_fields.items()
    }


def _invalid_body(problem: str) -> ApiError:
    return bad_request(f"JSON does not validate: {problem}")


class BodyReader:
    """Reads bodies of the extension into a model; `VersionedSchema` validates those of Placement."""

    refusal: Callable[[str], Exception] = staticmethod(_invalid_body)

    def __init__(self, model: type[Body]) -> None:
        self._model = model

    def at(self, _version: Version) -> "BodyReader":
        """Return this reader, which serves all versions."""
        return self

    @cached_property
    def schema(self) -> Schema:
        """Return the JSON schema, without references."""
        schema = self._model.model_json_schema(schema_generator=_BodySchema)
        return _inline_definitions(schema, schema.pop("$defs", {}))  # type: ignore[no-any-return]

    def read(self, value: Any, place: str = "") -> Any:
        """Read a parsed body, or a part of a body at a place.

        Raises:
            ApiError: 400 with the place and the text of the first problem.
        """
        try:
            return self._model.model_validate(value)
        except ValidationError as error:
            raise self.refusal(_describe_problem(error, value, place)) from None


class _BodySchema(GenerateJsonSchema):
    """Generates schemas of bodies; a list that is read into a set may contain an item twice."""

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        """Override: remove `uniqueItems`."""
        described_schema = super().frozenset_schema(schema)
        del described_schema["uniqueItems"]
        return described_schema


def _inline_definitions(schema: Schema, definitions: Mapping[str, Any]) -> Any:
    """Return a copy of a schema without references, titles and defaults."""

    def inline(node: Schema) -> Any:
        if "$ref" in node:
            return _inline_definitions(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
        if "patternProperties" in node:
            [(pattern, value)] = node.pop("patternProperties").items()
            node |= {"propertyNames": {"pattern": pattern}, "additionalProperties": value}
        if node.get("default", node) is None and "anyOf" in node:
            # The member may be absent, but not null.
            kinds = [kind for kind in node["anyOf"] if kind != {"type": "null"}]
            return {"anyOf": kinds} if len(kinds) > 1 else kinds[0]
        removed_keys = {"title", "default", "discriminator"}
        if "properties" in node:
            # Objects with equal members are one named schema, even if the docstrings of their models differ.
            removed_keys.add("description")
        return {key: value for key, value in node.items() if key not in removed_keys}

    return transform(schema, inline)


def _describe_problem(error: ValidationError, body: Any, within: str) -> str:
    first_fault = error.errors(include_url=False)[0]
    kind, steps = first_fault["type"], list(first_fault["loc"])
    values = dict(first_fault.get("ctx", {}), value=abbreviate(first_fault["input"]))
    noun = _EXPECTED_KINDS.get(kind)
    if kind == "missing":
        text = f"{steps.pop()!r} is required"
    elif kind == "string_pattern_mismatch":
        pattern = values["pattern"]
        choices = pattern.strip("^()$").replace("|", ", ")
        text = f"{values['value']} is not {_EXPECTED_FORMS.get(pattern, f'one of {choices}')}"
    elif noun is not None:
        text = f"{values['value']} is not {noun}"
    else:
        text = (
            _PROBLEM_TEXTS[kind].format(**values) if kind in _PROBLEM_TEXTS else first_fault["msg"]
        )
        text = _MEMBER.sub(r"\1", text)
    place = ".".join(filter(None, (within, _format_place(body, steps))))
    return f"{place}: {text}" if place else text


def abbreviate(value: Any) -> str:
    """Return the beginning of a value as JSON, for an error text."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return quote_value(json.dumps(value, ensure_ascii=False))


def _format_place(body: Any, steps: Iterable[int | str]) -> str:
    """Return the place of a value, as in `rules[0].domains[1]`; steps that are not in the body are branches of unions."""
    text = ""
    for step in steps:
        if isinstance(body, list) and isinstance(step, int):
            body, text = body[step], f"{text}[{step}]"
        elif isinstance(body, dict) and step in body:
            body, text = body[step], f"{text}.{step}"
    return quote_value(text.removeprefix("."))


def _make_uuid_validator(noun: str, *, normalises: bool = True) -> AfterValidator:
    """Return a validator of UUIDs in any spelling; `noun` is the kind of object in its error."""

    def read_uuid(text: str) -> str:
        uuid = normalised_uuid(text)
        if uuid is None:
            raise ValueError(f"{abbreviate(text)} is not the UUID of {noun}")
        return uuid if normalises else text

    return AfterValidator(read_uuid)


def list_length(least: int = 0, most: int | None = None) -> Any:
    """Return the bounds of a list; only its first invalid item is an error."""
    return Field(strict=False, min_length=least or None, max_length=most, fail_fast=True)


AnyUuid = Annotated[
    str, _make_uuid_validator("anything", normalises=False), WithJsonSchema(ANY_UUID)
]
UuidText = Annotated[str, WithJsonSchema(ANY_UUID)]
"""A UUID that the handler validates."""
ConsumerUuid = Annotated[str, _make_uuid_validator("a consumer"), WithJsonSchema(ANY_UUID)]
ProviderUuid = Annotated[
    str, _make_uuid_validator("a resource provider"), WithJsonSchema(ANY_UUID)
]
ConsumerKey = Annotated[str, Field(pattern=PROVIDER_KEY)]
"""A UUID with dashes, in the spelling of the client."""
DashedUuid = Annotated[str, Field(pattern=str(DASHED_UUID["pattern"]))]
ConditionKey = Annotated[str, Field(pattern=f"^{CONDITION_KEY}$")]
HoldUuid = Annotated[str, _make_uuid_validator("a hold"), WithJsonSchema(ANY_UUID)]
AggregateUuid = Annotated[
    str, _make_uuid_validator("an aggregate", normalises=False), WithJsonSchema(ANY_UUID)
]
"""A UUID in the spelling of the client, which page 40 preserves."""

Consumers = Annotated[tuple[ConsumerUuid, ...], list_length(0, MOST_NAMED)]
Providers = Annotated[tuple[ProviderUuid, ...], list_length(0, MOST_NAMED)]

ShortText = Annotated[str, Field(min_length=1, max_length=255)]
Positive = Annotated[int, Field(ge=1, le=MAXIMUM_INTEGER)]

Query = Annotated[str, WithJsonSchema(QUERY)]
"""A query string of GET /allocation_candidates."""

Alternatives = Annotated[tuple[Query, ...], list_length(1, 16)]
"""Queries; the first with a candidate applies."""


def reject_repetition(noun: str) -> AfterValidator:
    """Return a validator that rejects repeated items."""

    def check(values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(values)) < len(values):
            raise ValueError(f"{noun} is named twice")
        return values

    return AfterValidator(check)


def _read_domains(value: Any, read: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return tuple(dict.fromkeys(read(value)))
    if value == "tree":
        return ()
    raise ValueError(f"{abbreviate(value)} is neither 'tree' nor a list of aggregates")


_AGGREGATES = {"type": "array", "minItems": 1, "maxItems": _MOST_DOMAINS, "items": ANY_UUID}

Domains = Annotated[
    tuple[AggregateUuid, ...],
    list_length(1, _MOST_DOMAINS),
    WrapValidator(_read_domains),
    WithJsonSchema({"anyOf": [{"enum": ["tree"]}, _AGGREGATES]}),
]
"""Aggregates; an empty tuple if every tree is a domain."""

HoldUuids = Annotated[
    tuple[HoldUuid, ...],
    list_length(1, MOST_SOURCES),
    reject_repetition("a hold"),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""Holds to draw from, each once."""

Parts = Annotated[int, Field(ge=1, le=_MOST_PARTS)]
"""The number of domains in a response."""

TimeOrNull = Annotated[
    str | None, WithJsonSchema({"type": ["string", "null"], "format": "date-time"})
]
"""A time in the form of RFC 3339, which the handler parses."""

OR_NULL: Any = Field(default_factory=type(None))
"""The default of a member that may be null."""
