# SPDX-License-Identifier: Apache-2.0
"""The largest bodies that each operation accepts: of each list and mapping that its schema has.

They are made from the schemas, so that no operation, and no part of a body, is forgotten.
"""

import copy
import json
from dataclasses import dataclass
from functools import partial

from treeclaim.api.protocol.request.validation import count_values
from treeclaim.model.microversions import NEWEST

BODY_BYTES = 16 * 1024 * 1024
AROUND = 1_000
"""Members of an object around a list or mapping, if both are filled."""

_FURTHER_ENTRIES = 10
"""Members whose size is measured; a name with two digits may take more bytes than one with one digit."""

EACH = "*"
"""The step of a path into each member of a list or mapping."""


@dataclass(frozen=True)
class Names:
    """Placeholders of values in a body.

    Attributes:
        uuids: UUIDs of existing providers; more are made up if needed.
        query: For texts of any form.
        generation: Generation of these providers.
    """

    uuids: tuple
    query: str
    generation: int

    def uuid(self, number):
        chosen = self.uuids[number : number + 1]
        return chosen[0] if chosen else f"{number:08x}-0000-4000-8000-000000000000"

    def key(self, pattern, number):
        """Return one of many names that match the pattern of a mapping."""
        if pattern is not None and "a-fA-F" in pattern:
            return self.uuid(number)
        if pattern is not None and pattern.endswith("[a-z][a-z0-9_]{0,62}$"):
            return f"custom_{number}"
        if pattern is not None and "INSTANCE" not in pattern and number == 0:
            return "VCPU" if "A-Z" in pattern else "a"
        return f"CUSTOM_{number:020d}"


def full_bodies(operation, names):
    """Labels of the full parts of an operation's bodies, each with a function that makes the body; it may be large."""
    schema = copy.deepcopy(operation.body.at(NEWEST).schema)
    if operation.forms.body is not None:
        schema = operation.forms.body(schema)
    bounds = dict(_containers(schema, ()))
    for path, most in bounds.items():
        outer = [bounds[path[:at]] or AROUND for at, step in enumerate(path) if step == EACH]
        for around in {1, min([AROUND, *outer])} if outer else {1}:
            label = f"{'.'.join(path) or 'body'}: full in each of {around}"
            yield (
                label,
                partial(_fullest, schema, names, path, most, around, operation.most_values),
            )


def _fullest(schema, names, path, most, around, most_values):
    """Return the body in which a list or mapping has as many members as the bounds of bytes and values allow."""
    sizes = []
    for count in (1, 1 + _FURTHER_ENTRIES):
        body = json.dumps(_Maker(names, path, count, around).value(schema)).encode()
        sizes.append((len(body), count_values(body)))
    (length, values), (longer, longer_values) = sizes
    by_bytes = (BODY_BYTES - length) * _FURTHER_ENTRIES // max(longer - length, 1)
    by_values = (most_values - values) * _FURTHER_ENTRIES // max(longer_values - values, 1)
    count = max(min(by_bytes, by_values) * 99 // 100, 1)
    return _Maker(names, path, count if most is None else min(count, most), around).value(schema)


def _containers(schema, path):
    """The paths of all lists and mappings, and how many members each may have."""
    schema = _form(schema)
    for name, inner in schema.get("properties", {}).items():
        yield from _containers(inner, (*path, name))
    for inner, most in _members(schema):
        yield path, most
        yield from _containers(inner, (*path, EACH))


def _members(schema):
    """The schema of the members of a list or mapping, and how many there may be."""
    if "items" in schema:
        yield schema["items"], schema.get("maxItems")
    for inner in schema.get("patternProperties", {}).values():
        yield inner, schema.get("maxProperties")
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"], schema.get("maxProperties")


def _form(schema):
    """The largest of the forms that a value may have."""
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and "properties" not in schema:
            return max(schema[keyword], key=lambda form: len(json.dumps(form)))
    return schema


@dataclass(frozen=True)
class _Maker:
    """Makes a body in which one list or mapping is full.

    Attributes:
        full: Its path.
        count, around: Members of it, and of the one around it.
    """

    names: Names
    full: tuple
    count: int
    around: int

    def value(self, schema, path=(), number=0):
        """Return a value, which is that of a member with a number."""
        schema = _form(schema)
        if "const" in schema or "enum" in schema:
            return schema["const"] if "const" in schema else schema["enum"][0]
        kind = schema.get("type", "object")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind in {"integer", "number"}:
            is_generation = path[-1:] == ("resource_provider_generation",)
            return self.names.generation if is_generation else max(schema.get("minimum", 1), 1)
        if kind == "boolean":
            return True
        if kind == "string":
            return self._text(schema, number)
        if kind == "array":
            count = self._count(path, schema.get("minItems", 0))
            return [self.value(schema["items"], (*path, EACH), at) for at in range(count)]
        return self._object(schema, path, number)

    def _count(self, path, least):
        if path == self.full:
            return self.count
        suffix = self.full[len(path) :]
        if self.full[: len(path)] != path or suffix[:1] != (EACH,):
            return least
        return 1 if EACH in suffix[1:] else self.around

    def _object(self, schema, path, number):
        known = schema.get("properties", {})
        form = next(iter([*schema.get("anyOf", ()), *schema.get("oneOf", ())]), {})
        wanted = {*schema.get("required", ()), *form.get("required", ())}
        wanted |= {*self.full[len(path) : len(path) + 1]}
        if "hold" in known:
            # Nothing but a hold does without.
            wanted.add("consumer_type")
        if schema.get("minProperties", 0) > len(wanted & known.keys()):
            wanted |= {*list(known)[:1]}
        members = {
            name: self.value(inner, (*path, name), number)
            for name, inner in known.items()
            if name in wanted
        }
        patterns = [
            *schema.get("patternProperties", ()),
            schema.get("propertyNames", {}).get("pattern"),
        ]
        for inner, _ in _members(schema):
            for at in range(self._count(path, schema.get("minProperties", 0))):
                key = self.names.key(patterns[0], at)
                members[key] = self.value(inner, (*path, EACH), at)
        return members

    def _text(self, schema, number):
        if schema.get("format") == "uuid":
            return self.names.uuid(number)
        if "pattern" in schema:
            return self.names.key(schema["pattern"], number)
        is_query = schema.get("maxLength") is None
        return self.names.query if is_query else f"CUSTOM_TRAIT_{number}"
