# SPDX-License-Identifier: Apache-2.0
"""What is beside the quick validator: bounds that are judged before it, and the wording that clients know.

A validator looks at every item of a list, and then says that there are too many. The bounds are those of
the schema itself (`maxItems`, `maxProperties`), at any depth.

`jsonschema` words the refusals of Placement. Three of its keywords are replaced. Its patterns are
Python's, where `$` also matches before a newline at the end; JSON Schema's are ECMAScript's, where
it does not. And it compares each item of an array with each other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from treeclaim.api.protocol.remembering import remembering_short
from treeclaim.api.protocol.request.schemas import Schema
from treeclaim.model.names import normalised_uuid

FORMATS = FormatChecker(formats=())
"""Formats that are checked."""

_REMEMBERED, _LONGEST_REMEMBERED = 256, 256
"""Patterns, and characters of each: all there are in our schemas, some fifty."""


@FORMATS.checks("uuid")
def is_uuid(value: object) -> bool:
    """Accept every spelling of a uuid (contract page 00, section 12)."""
    return not isinstance(value, str) or normalised_uuid(value) is not None


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of our schemas with ECMAScript's `$`."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


def _pattern(
    _validator: Any, pattern: str, instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _compiled(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Schema], instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in patterns.items():
        for name, value in instance.items():
            if _compiled(pattern).search(name):
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
        if name not in named and not any(_compiled(pattern).search(name) for pattern in patterns)
    ]
    if isinstance(allowed, dict):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extra:
        names = ", ".join(map(repr, sorted(extra)))
        if patterns:
            verb = "does" if len(extra) == 1 else "do"
            known = ", ".join(map(repr, sorted(patterns)))
            yield ValidationError(f"{names} {verb} not match any of the regexes: {known}")
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

_KEYWORDS: Mapping[type, str] = {list: "maxItems", dict: "maxProperties"}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bounds of a schema, and of those inside it.

    Attributes:
        most: By keyword.
        each: The bounds of the items of a list.
        named: The bounds of the members of an object, by name.
        others: The bounds of the other members of an object.
    """

    most: Mapping[str, int] = field(default_factory=dict)
    each: "Sizes | None" = None
    named: Mapping[str, "Sizes"] = field(default_factory=dict)
    others: "Sizes | None" = None

    @classmethod
    def of(cls, schema: Schema) -> "Sizes | None":
        """Return the bounds of a schema; None if it has none, and nothing inside it has."""
        # Of several forms that a value may have, at most one is a list in any of our schemas.
        forms = [schema, *schema.get("anyOf", ())]
        most = {
            keyword: form[keyword]
            for form in forms
            for keyword in _KEYWORDS.values()
            if keyword in form
        }
        items = [form["items"] for form in forms if "items" in form]
        members = {name: cls.of(inner) for name, inner in schema.get("properties", {}).items()}
        # Members that are not named have one form of value in any of our schemas.
        others = list(schema.get("patternProperties", {}).values())
        if isinstance(schema.get("additionalProperties"), dict):
            others.append(schema["additionalProperties"])
        bounds = cls(
            most,
            cls.of(items[0]) if items else None,
            {name: sizes for name, sizes in members.items() if sizes is not None},
            cls.of(others[0]) if others else None,
        )
        return None if bounds == cls() else bounds

    def excess(self, value: object, path: str = "") -> str | None:
        """Say what a value has too much of; None if nothing.

        Args:
            value: What was parsed; it may be of any form.
            path: Where it is.
        """
        keyword = _KEYWORDS.get(type(value))
        if keyword is None or not isinstance(value, list | dict):
            return None
        most = self.most.get(keyword)
        if most is not None and len(value) > most:
            return f"{len(value)} are more than {most} Failed validating {keyword!r} on instance{path}"
        for inner, part, step in self._parts(value):
            problem = inner.excess(part, f"{path}[{step!r}]")
            if problem is not None:
                return problem
        return None

    def _parts(
        self, value: "list[object] | dict[str, object]"
    ) -> Iterable[tuple["Sizes", object, object]]:
        if isinstance(value, dict):
            for name, inner in self.named.items():
                yield inner, value.get(name), name
            if self.others is not None:
                for name in value.keys() - self.named.keys():
                    yield self.others, value[name], name
        elif self.each is not None:
            for number, item in enumerate(value):
                yield self.each, item, number
