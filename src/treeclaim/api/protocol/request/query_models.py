# SPDX-License-Identifier: Apache-2.0
"""Query strings of the extension as pydantic models, which define description, reader and error texts."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.request.bodies import BodyReader, DashedUuid, abbreviate, list_length
from treeclaim.api.protocol.request.schemas import (
    CLASS_NAME,
    DASHED_UUID,
    MEMBER_OF,
    list_pattern,
    text,
)
from treeclaim.model.claim import parse_utc
from treeclaim.model.microversions import NEWEST
from treeclaim.model.names import quote_value
from treeclaim.model.query import value_parsers
from treeclaim.model.request import ProviderConditions

_NAME = CLASS_NAME.strip("^$")
_UUID = str(DASHED_UUID["pattern"]).strip("^$")

_INTEGER = re.compile(r"0|[1-9][0-9]{0,17}")
"""int() rejects texts of several thousand digits."""

_REPEATED = frozenset({"member_of", "required"})
"""Parameters with several effective occurrences; the last occurrence of other parameters is effective."""


class QueryReader(BodyReader):
    """Reads query strings of the extension into a model."""

    refusal = staticmethod(value_parsers.invalid_query)

    def read_pairs(self, pairs: Iterable[tuple[str, str]]) -> Any:
        """Read the names and values of a query string.

        Raises:
            InvalidQueryError: with the name and the text of the first problem.
        """
        values: dict[str, Any] = {}
        for name, value in pairs:
            if name in _REPEATED:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        return self.read(values)


def _read_integer(value: str) -> int:
    if not _INTEGER.fullmatch(value):
        raise ValueError(f"{abbreviate(value)} is not an integer")
    return int(value)


READ_INTEGER = BeforeValidator(_read_integer)


def _split_list(value: str) -> list[str]:
    values = value.removeprefix("in:").split(",") if value.startswith("in:") else [value]
    return list(dict.fromkeys(values))


def _one_or_several(item: str) -> WithJsonSchema:
    return WithJsonSchema(text(f"({item}|in:{list_pattern(item)})"))


Uuids = Annotated[
    tuple[DashedUuid, ...], list_length(), BeforeValidator(_split_list), _one_or_several(_UUID)
]
"""A UUID, or `in:` and several UUIDs."""

ClassNames = Annotated[
    tuple[Annotated[str, Field(pattern=CLASS_NAME)], ...],
    list_length(),
    BeforeValidator(_split_list),
    _one_or_several(_NAME),
]
"""A resource class, or `in:` and several classes."""


def _read_time(value: str, info: ValidationInfo) -> datetime:
    moment = parse_utc(value)
    if moment is None:
        raise bad_request(
            f"Invalid {info.field_name}: {quote_value(value)} is not a time in the form of RFC 3339."
        )
    return moment


Time = Annotated[
    datetime,
    PlainValidator(_read_time),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time in naive UTC."""


def _read_membership(values: Sequence[str]) -> ProviderConditions:
    return value_parsers.parse_member_of(list(values), NEWEST)


Membership = Annotated[
    ProviderConditions, PlainValidator(_read_membership), WithJsonSchema(MEMBER_OF)
]


def _read_traits(values: Sequence[str]) -> ProviderConditions:
    return ProviderConditions.together(
        value_parsers.parse_required(value, NEWEST) for value in values
    )


Traits = Annotated[
    ProviderConditions,
    PlainValidator(_read_traits),
    WithJsonSchema(text(f"(in:{list_pattern(_NAME)}|{list_pattern(f'!?{_NAME}')})")),
]

Amounts = Annotated[
    dict[str, int],
    PlainValidator(value_parsers.parse_resources),
    WithJsonSchema(text(list_pattern(f"{_NAME}:[1-9][0-9]*"))),
]
"""Amounts by resource class."""
