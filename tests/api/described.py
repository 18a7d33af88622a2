# SPDX-License-Identifier: Apache-2.0
"""Places of values in requests, from the API description: an operation that is added has them without a change here."""

import json
import re

from treeclaim.api.description.openapi import build_description
from treeclaim.api.routes import OPERATIONS

HOST = "10000000-0000-4000-8000-000000000001"
CONSUMER = "20000000-0000-4000-8000-000000000001"

NUMBER = "the number"
"""Stands for it in a sample."""

TEXTS = (HOST, "VCPU", "INSTANCE", "CUSTOM_NUMBER", "A", "unknown")
"""Values of a parameter; the first that its schema accepts is used."""

QUESTIONS = (
    f"resources=VCPU:{NUMBER}",
    f"resources1=VCPU:{NUMBER}&resources2=VCPU:{NUMBER}&group_policy=none&order_by=near:1:2*{NUMBER}",
    f"resources=VCPU:{NUMBER}&can_split=VCPU&order_by=pack:VCPU",
    f"resources=VCPU:1&limit={NUMBER}",
    f"resources=VCPU:1&order_by=spread:VCPU*{NUMBER}",
    f"resources=VCPU:1&preferred=CUSTOM_A*{NUMBER}",
)
"""Queries that are texts in bodies."""

FORMS = {
    "resources": (f"VCPU:{NUMBER}",),
    "order_by": (
        f"pack:VCPU*{NUMBER}",
        f"spread_providers:VCPU*{NUMBER}",
        f"shuffle:{NUMBER}",
        f"preferred*{NUMBER}",
    ),
    "preferred": (f"CUSTOM_A*{NUMBER}",),
}
"""Values of parameters that contain a number."""

DOCUMENT = build_description(OPERATIONS)
DESCRIBED = DOCUMENT["paths"]


def samples(schema, name=""):
    """Values that suit a schema, with all that may be there; each number in one of them at least."""
    if "$ref" in schema:
        return samples(DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], name)
    # Where the alternatives only say which members are required, all members are given.
    alternatives = [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
    if whole := [
        alternative
        for alternative in alternatives
        if not set(alternative) <= {"required", "properties"}
    ]:
        return [value for part_schema in whole for value in samples(part_schema, name)]
    if "const" in schema or "enum" in schema:
        return [schema.get("const", schema.get("enum", [None])[0])]
    kinds = schema.get("type")
    makers = {
        "integer": lambda: [NUMBER],
        "number": lambda: [NUMBER],
        "object": lambda: list(objects(schema, name)),
        "array": lambda: [[sample] for sample in samples(schema["items"], name)],
        "string": lambda: texts(schema, name),
        "boolean": lambda: [True],
        "null": lambda: [None],
    }
    return makers[kinds[0] if isinstance(kinds, list) else kinds]()


def texts(schema, name):
    is_query = name in ("alternatives", "requests", "query")
    return list(QUESTIONS) if is_query else [text_of(schema)]


def text_of(schema):
    return next(text for text in TEXTS if re.search(schema.get("pattern", ""), text))


def objects(schema, name=""):
    """Objects in which each member has each of its values at least once."""
    values = {
        member: samples(inner, member) for member, inner in schema.get("properties", {}).items()
    }
    for pattern, inner in schema.get("patternProperties", {}).items():
        # Lists of queries by consumer.
        within = name if name == "requests" and inner.get("type") == "array" else ""
        values[text_of({"pattern": pattern})] = samples(inner, within)
    if isinstance(schema.get("additionalProperties"), dict):
        is_named = "propertyNames" in schema
        key = text_of(schema["propertyNames"]) if is_named else "VCPU"
        inner = name if is_named else "requests"
        values[key] = samples(schema["additionalProperties"], inner)
    # Members of which one alone is allowed are taken in turn.
    if not values:
        yield {}
    exclusive = [
        name for alternative in schema.get("oneOf", ()) for name in alternative["required"]
    ]
    if schema.get("maxProperties") == 1:
        exclusive = list(values)
    for kept in exclusive or [None]:
        chosen = {
            name: values_of_member
            for name, values_of_member in values.items()
            if name == kept or name not in exclusive
        }
        for number in range(max(map(len, chosen.values()), default=0)):
            yield {
                name: values_of_member[number % len(values_of_member)]
                for name, values_of_member in chosen.items()
            }


def with_number(value, number):
    """Return a sample as JSON, with a number in all places."""
    return json.dumps(value).replace(f'"{NUMBER}"', number).replace(NUMBER, number)


def with_text(value, text):
    """Yield copies of a value, each with a text instead of one string or one name of a member."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            for changed in with_text(inner, text):
                yield [*value[:at], changed, *value[at + 1 :]]
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield {text if key == name else key: entry for key, entry in value.items()}
            for changed in with_text(inner, text):
                yield value | {name: changed}


def described():
    """Yield method, path with its variables filled in, and description of each operation."""
    for path, methods in DESCRIBED.items():
        filled = path.replace("{consumer_uuid}", CONSUMER).replace("{uuid}", HOST)
        filled = re.sub(r"\{\w+\}", "VCPU" if "inventories" in path else "CUSTOM_A", filled)
        for method, operation in methods.items():
            yield method.upper(), filled, operation


def bodies(operation):
    """Yield sample values of the body of a described operation."""
    content = operation.get("requestBody", {}).get("content", {})
    yield from samples(content["application/json"]["schema"]) if content else ()


def parameters(described):
    """The names of the parameters of a query, with a suffix where there may be any."""
    for parameter in described["parameters"]:
        if parameter["in"] == "query":
            yield from parameter["schema"].get("properties", {parameter["name"]: None})
