# SPDX-License-Identifier: Apache-2.0
"""Bodies that are as full as an operation lets them be: of each list and mapping that its schema has.

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
"""Members of what is around a list or mapping, where both are filled."""

_MORE = 10
"""Members by which it is told what one takes: a name with two digits may take more than one with one."""

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
        some = self.uuids[number : number + 1]
        return some[0] if some else f"{number:08x}-0000-4000-8000-000000000000"

    def key(self, pattern, number):
        """Return one of many names that match the pattern of a mapping."""
        if pattern is not None and "a-fA-F" in pattern:
            return self.uuid(number)
        if pattern is not None and pattern.endswith("[a-z][a-z0-9_]{0,62}$"):
            return f"custom_{number}"
        if pattern is not None and "INSTANCE" not in pattern and number == 0:
            return "VCPU" if "A-Z" in pattern else "a"
        return f"CUSTOM_{number:020d}"


@dataclass(frozen=True)
class Full:
    """A body with one list or mapping full.

    Attributes:
        path: The path of the operation.
        count, around: Members of it, and of the one around it.
    """

    path: tuple
    count: int
    around: int

    def members(self, path, least):
        """The number of members of a list or mapping."""
        if path == self.path:
            return self.count
        rest = self.path[len(path) :]
        if self.path[: len(path)] != path or rest[:1] != (EACH,):
            return least
        return 1 if EACH in rest[1:] else self.around


def full_bodies(operation, names):
    """Labels of the full parts of an operation's bodies, each with a function that makes the body; it may be large."""
    checker = operation.body.at(NEWEST)
    schema = copy.deepcopy(checker.schema)
    if operation.forms.body is not None:
        schema = operation.forms.body(schema)
    bounds = dict(_containers(schema, ()))
    for path, most in bounds.items():
        outer = [bounds[path[:at]] or AROUND for at, step in enumerate(path) if step == EACH]
        for around in {1, min([AROUND, *outer])} if outer else {1}:
            label = f"{'.'.join(path) or 'body'}: full in each of {around}"
            yield label, partial(_full, schema, path, most, around, names, operation.most_values)


def _full(schema, path, most, around, names, most_values):
    """The body in which one list or mapping is full."""
    return _value(schema, names, _fullest(schema, path, most, around, names, most_values))


def _fullest(schema, path, most, around, names, most_values):
    """As many members as the bounds of bytes and values allow."""
    sizes = []
    for count in (1, 1 + _MORE):
        body = json.dumps(_value(schema, names, Full(path, count, around))).encode()
        sizes.append((len(body), count_values(body)))
    (length, values), (longer, more) = sizes
    by_bytes = (BODY_BYTES - length) * _MORE // max(longer - length, 1)
    by_values = (most_values - values) * _MORE // max(more - values, 1)
    count = max(min(by_bytes, by_values) * 99 // 100, 1)
    return Full(path, count if most is None else min(count, most), around)


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


def _value(schema, names, full, path=(), number=0):
    schema = _form(schema)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind in {"integer", "number"}:
        is_generation = path[-1:] == ("resource_provider_generation",)
        return names.generation if is_generation else max(schema.get("minimum", 1), 1)
    if kind == "boolean":
        return True
    if kind == "string":
        return _text(schema, names, number)
    if kind == "array":
        count = full.members(path, schema.get("minItems", 0))
        inner = schema["items"]
        return [_value(inner, names, full, (*path, EACH), at) for at in range(count)]
    return _object(schema, names, full, path, number)


def _object(schema, names, full, path, number):
    wanted = set(schema.get("required", ()))
    for form in [*schema.get("anyOf", ()), *schema.get("oneOf", ())][:1]:
        wanted |= set(form.get("required", ()))
    if "hold" in schema.get("properties", {}):
        # Nothing but a hold does without.
        wanted.add("consumer_type")
    wanted |= set(full.path[len(path) : len(path) + 1])
    known = schema.get("properties", {})
    if schema.get("minProperties", 0) > len(wanted & known.keys()):
        wanted |= set(list(known)[:1])
    found = {
        name: _value(inner, names, full, (*path, name), number)
        for name, inner in schema.get("properties", {}).items()
        if name in wanted
    }
    pattern = next(
        iter(schema.get("patternProperties", {})), schema.get("propertyNames", {}).get("pattern")
    )
    for inner, _ in _members(schema):
        for at in range(full.members(path, schema.get("minProperties", 0))):
            key = names.key(pattern, at)
            found[key] = _value(inner, names, full, (*path, EACH), at)
    return found


def _text(schema, names, number):
    if schema.get("format") == "uuid":
        return names.uuid(number)
    if "pattern" in schema:
        return names.key(schema["pattern"], number)
    return names.query if schema.get("maxLength") is None else f"CUSTOM_TRAIT_{number}"
