# SPDX-License-Identifier: Apache-2.0
"""Parses values of queries for providers and candidates (contract pages 20 and 90).

Each parser raises `InvalidQueryError` with the contract's phrase.
"""

from collections.abc import Sequence, Sized

from treeclaim.model.errors import InvalidValueError, TreeclaimError
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.request import ProviderConditions


class InvalidQueryError(InvalidValueError):
    """A query cannot be parsed.

    Attributes:
        code: Last word of the error code: `bad_value`, `missing_value` or `duplicate_key`; empty without a code.
        parameter: Name of the invalid parameter; empty if the phrase is not about one parameter.
    """

    message = "{text}"
    text: str
    code: str = ""
    parameter: str = ""


def unusable_parameter(parameter: str, problem: str) -> InvalidQueryError:
    """Return the error of an invalid value of a parameter of the extension."""
    text = f"Invalid query string parameters: '{parameter}' cannot be used like this: {problem}"
    return InvalidQueryError(text, "bad_value", parameter)


def repeated_parameter(parameter: str) -> InvalidQueryError:
    """Return the error of a repeated parameter."""
    text = f"Query parameter {parameter!r} may be specified only once."
    return InvalidQueryError(text, "duplicate_key", parameter)


class QueryError(InvalidValueError):
    """The query at a position of a call is faulty, for example because it contains an unknown name."""

    message = "{where}: {error}"
    where: str
    error: TreeclaimError


_LONGEST_AMOUNT = 1_000
"""Most characters of an amount. Amounts beyond 64 bits are valid (page 90, note N6), but Python formats only numbers of
up to 4,300 digits."""

_ANY_FORM = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"


def invalid_query(problem: str) -> InvalidQueryError:
    """Return the error of an invalid query string."""
    return InvalidQueryError(f"Invalid query string parameters: {problem}")


def parse_resources(value: str) -> dict[str, int]:
    """Parse `CLASS:AMOUNT,…`; the last amount of a repeated class applies."""
    amounts = {}
    for part in value.split(",") if value.strip() else [""]:
        name, colon, text = part.partition(":")
        if not colon or ":" in text:
            raise InvalidQueryError(
                "Badly formed resources parameter. Expected resources query string parameter in "
                "form: ?resources=VCPU:2,MEMORY_MB:1024. Got: "
                f"{quote_value(part) if value.strip() else 'empty string'}."
            )
        amounts[name] = _parse_amount(name, text)
    return amounts


def _parse_amount(name: str, text: str) -> int:
    try:
        amount = int(text) if len(text) <= _LONGEST_AMOUNT else None
    except ValueError:
        amount = None
    if amount is None:
        raise InvalidQueryError(
            f"Requested resource {quote_value(name)} expected positive integer amount. "
            f"Got: {quote_value(text)}."
        )
    if amount < 1:
        raise InvalidQueryError(
            f"Requested resource {quote_value(name)} requires amount >= 1. Got: {quote_value(amount)}."
        )
    return amount


def parse_required(
    value: str, version: Version, *, any_allowed: bool = True
) -> ProviderConditions:
    """Parse a value of `required`, or of `root_required`, where only the extension allows `in:`."""
    if value.startswith("in:"):
        if not version.has(Feature.ANY_TRAITS) or not any_allowed:
            raise invalid_query(
                f"The format '{_ANY_FORM}' only supported since microversion 1.39. Got: {quote_value(value)}"
            )
        return _parse_any_of(value)
    required_names, forbidden_names = dict[str, None](), set[str]()
    may_forbid = version.has(Feature.FORBIDDEN_TRAITS)
    for element in value.split(","):
        name = element.strip()
        if name.startswith("!") and may_forbid:
            name = name.lstrip("!")
            forbidden_names.add(name)
        else:
            required_names[name] = None
        if not name or name.startswith("!"):
            mark = "!" if may_forbid else ""
            raise _unexpected_required(f"HW_CPU_X86_VMX,{mark}CUSTOM_MAGIC", value)
    required_traits = tuple(frozenset({name}) for name in required_names)
    return ProviderConditions(required=required_traits, forbidden=frozenset(forbidden_names))


def _unexpected_required(form: str, value: str) -> InvalidQueryError:
    return invalid_query(
        f"Expected 'required' parameter value of the form: {form}. Got: {quote_value(value)}"
    )


def _parse_any_of(value: str) -> ProviderConditions:
    names = [name.strip() for name in value.removeprefix("in:").split(",")]
    if not all(names):
        raise _unexpected_required(_ANY_FORM, value)
    if any(name.startswith("!") for name in names):
        raise invalid_query(
            f"The format '{_ANY_FORM}' does not support forbidden traits. Got: {quote_value(value)}"
        )
    return ProviderConditions(required=(frozenset(names),))


def parse_member_of(
    values: Sequence[str], version: Version, suffix: str = ""
) -> ProviderConditions:
    """Parse all values of one `member_of` parameter."""
    require_repeatable(values, version, suffix)
    required_aggregates, forbidden_uuids = [], set[str]()
    for value in values:
        aggregates = _parse_aggregates(value)
        if not value.startswith("!"):
            required_aggregates.append(aggregates)
        elif version.has(Feature.FORBIDDEN_AGGREGATES):
            forbidden_uuids |= aggregates
        else:
            raise InvalidQueryError(
                f"Forbidden member_of{suffix} parameters are not supported in the specified "
                "microversion"
            )
    return ProviderConditions(
        member_of=tuple(required_aggregates), forbidden_aggregates=frozenset(forbidden_uuids)
    )


def require_repeatable(values: Sized, version: Version, suffix: str = "") -> None:
    """Refuse a repeated `member_of` before microversion 1.24."""
    if len(values) > 1 and not version.has(Feature.REPEATED_MEMBER_OF):
        raise InvalidQueryError(f"Multiple member_of{suffix} parameters are not supported")


def _parse_aggregates(value: str) -> frozenset[str]:
    text = value.removeprefix("!")
    aggregates = text.removeprefix("in:").split(",") if text.startswith("in:") else [text]
    if "," in aggregates[0]:
        raise InvalidQueryError(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
            "using the valid microversion."
        )
    if not all(map(normalised_uuid, aggregates)):
        raise invalid_query(
            f"Expected 'member_of' parameter to contain valid UUID(s). Got: {quote_value(value)}"
        )
    return frozenset(aggregates)


def split_list(value: str) -> list[str]:
    """Return the stripped items of `ITEM` or `in:ITEM,…`."""
    text = value.strip()
    if not text.startswith("in:"):
        return [text]
    return [item.strip() for item in text.removeprefix("in:").split(",")]
