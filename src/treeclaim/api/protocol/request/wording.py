# SPDX-License-Identifier: Apache-2.0
"""The validator whose refusals clients know: `jsonschema`, which words those of Placement.

Four of its keywords are replaced. Its patterns are Python's, where `$` also matches before a newline at the end;
JSON Schema's are ECMAScript's, where it does not. And it compares each item of an array with each other.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import orjson
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from treeclaim.api.protocol.request.schemas import Schema
from treeclaim.model.names import normalised_uuid

FORMATS = FormatChecker(formats=())
"""Formats that are checked."""


@FORMATS.checks("uuid")
def is_uuid(value: object) -> bool:
    """Accept every spelling of a uuid (contract page 00, section 12)."""
    return not isinstance(value, str) or normalised_uuid(value) is not None


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern of our schemas with ECMAScript's `$`."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


def _pattern(
    _validator: Any, pattern: str, instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _compile_pattern(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Schema], instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in patterns.items():
        for name, value in instance.items():
            if _compile_pattern(pattern).search(name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: object, instance: object, schema: Schema
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns = schema.get("patternProperties", {})
    named = schema.get("properties", {})
    extra = [
        name
        for name in instance
        if name not in named
        and not any(_compile_pattern(pattern).search(name) for pattern in patterns)
    ]
    if isinstance(allowed, dict):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extra:
        names = ", ".join(map(repr, sorted(extra)))
        if patterns:
            verb = "does" if len(extra) == 1 else "do"
            expressions = ", ".join(map(repr, sorted(patterns)))
            yield ValidationError(f"{names} {verb} not match any of the regexes: {expressions}")
        else:
            verb = "was" if len(extra) == 1 else "were"
            text = f"Additional properties are not allowed ({names} {verb} unexpected)"
            yield ValidationError(text)


def _unique_items(
    _validator: Any, is_wanted: object, instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    if not is_wanted or not isinstance(instance, list):
        return
    different = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in instance}
    if len(different) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


WordingValidator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    },
)
"""The validator's class."""
