# SPDX-License-Identifier: Apache-2.0
"""Any number in any place of any operation, new ones too, gets a clear refusal or a sound answer.

The places are those of the API description: each number of a body, each parameter of a query. So an
operation that is added is tried without a change here.
"""

import base64
import json
import re
from itertools import count
from urllib.parse import quote

import pytest

from tests.api.raw import require_sound, send
from tests.api.test_numbers import CONSUMER, HOST, NUMBERS, application
from tests.bodies import wanted_by
from treeclaim.api.description.openapi import description
from treeclaim.api.routes import OPERATIONS

__all__ = ["application"]

NUMBER = "the number"
"""Stands for it in a sample."""

VERSION = "1.39, treeclaim latest"
TEXTS = (HOST, "VCPU", "INSTANCE", "CUSTOM_NUMBER", "A", "unknown")
"""Of which the first that suits its schema is taken."""

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
"""Of parameters in which a number is a part of the value."""

DOCUMENT = description(OPERATIONS)
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
        return [value for one in whole for value in samples(one, name)]
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
    is_query = name in ("alternatives", "requests", "query") or "resources=" in schema.get(
        "pattern", ""
    )
    return list(QUESTIONS) if is_query else [text_of(schema)]


def text_of(schema):
    return next(text for text in TEXTS if re.search(schema.get("pattern", ""), text))


def objects(schema, name=""):
    """Objects in which each member has each of its values at least once."""
    values = {each: samples(inner, each) for each, inner in schema.get("properties", {}).items()}
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
    exclusive = [name for one in schema.get("oneOf", ()) for name in one["required"]]
    if schema.get("maxProperties") == 1:
        exclusive = list(values)
    for kept in exclusive or [None]:
        chosen = {
            name: some for name, some in values.items() if name == kept or name not in exclusive
        }
        for number in range(max(map(len, chosen.values()), default=0)):
            yield {name: some[number % len(some)] for name, some in chosen.items()}


def places(value):
    """Bodies with the number in one place, and harmless ones in the others."""
    text = json.dumps(value)
    parts = re.split(f'"{NUMBER}"|{NUMBER}', text)
    marks = re.findall(f'"{NUMBER}"|{NUMBER}', text)
    for chosen in range(len(marks)):
        yield (
            "".join(part + (NUMBER if at == chosen else "1") for at, part in enumerate(parts[:-1]))
            + parts[-1]
        )


def calls():
    """Method, path, query and body of each place; the number stands in one of them."""
    for path, methods in DESCRIBED.items():
        filled = path.replace("{consumer_uuid}", CONSUMER).replace("{uuid}", HOST)
        filled = re.sub(r"\{\w+\}", "VCPU" if "inventories" in path else "CUSTOM_A", filled)
        for method, described in methods.items():
            content = described.get("requestBody", {}).get("content", {})
            for value in samples(content["application/json"]["schema"]) if content else ():
                for body in places(value):
                    yield method.upper(), filled, "", body
            for name in parameters(described):
                for form in (*FORMS.get(name, ()), NUMBER, *markers(name, path)):
                    yield method.upper(), filled, f"{name}={form}", None


def parameters(described):
    """The names of the parameters of a query, with a suffix where there may be any."""
    for parameter in described["parameters"]:
        if parameter["in"] == "query":
            yield from parameter["schema"].get("properties", {parameter["name"]: None})


def markers(name, path):
    """Where a page of a list begins."""
    return (
        ("marker of allocations",) if (name, path) == ("marker", "/treeclaim/allocations") else ()
    )


CALLS = list(dict.fromkeys(calls()))


def asked(query, number):
    if query.endswith("marker of allocations"):
        marker = base64.urlsafe_b64encode(f"allocations:{number}".encode()).rstrip(b"=").decode()
        return f"marker={marker}".encode()
    return query.replace(NUMBER, quote(number)).encode()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_numbers_in_every_described_field_are_handled(application, part):
    turns, stride = count(), 6
    for method, path, query, body in CALLS[part::4]:
        needed = "resources=VCPU:1&" if path.startswith("/allocation_candidates") else ""
        # Each number meets many places, and each place many numbers, though not all of them.
        for number in NUMBERS[next(turns) % stride :: stride]:
            written = None if body is None else body.replace(NUMBER, number).encode()
            text = asked(query, number)
            if needed and not text.startswith(b"resources="):
                text = needed.encode() + text
            # To wait for changes takes the time that is asked for.
            if path == "/treeclaim/changes" and text.startswith(b"wait="):
                continue
            answer = send(application, method, path, query=text, body=written, version=VERSION)
            assert answer.status < 500, (method, path, text[:100], (written or b"")[:300], answer)
            require_sound(answer)


@pytest.mark.slow
def test_samples_pass_schema_validation(application):
    """With small numbers hardly any is refused for its form, or nothing would be shown above."""
    refused, bodies = [], [call for call in CALLS if call[3] is not None]
    for method, path, _, body in bodies:
        answer = send(
            application, method, path, body=body.replace(NUMBER, "1").encode(), version=VERSION
        )
        if answer.status == 400 and "does not validate" in answer.detail:
            refused.append((method, path, body, answer.detail[:300]))
    assert refused == []
    paths = {path for path, methods in DESCRIBED.items() if "requestBody" in str(methods)}
    assert len({body[1] for body in bodies}) > len(paths) / 2


@pytest.mark.parametrize("amount", [2**63, 2**64 + 1, 10**399 + 7])
def test_a_placement_that_fails_is_explained_with_the_exact_amount(application, amount):
    request = wanted_by([CONSUMER], f"resources=VCPU:{amount}")
    body = json.dumps({"requests": [request], "explain": True}).encode()
    answer = send(application, "POST", "/treeclaim/placements", body=body, version=VERSION)
    assert answer.status == 409
    assert f'"requested":{amount}'.encode() in answer.body.replace(b": ", b":")


@pytest.mark.parametrize("written", ["1", "1.0", "1e0", "10e-1", "0.1E+1"])
def test_a_whole_number_may_be_written_with_a_fraction_or_an_exponent(application, written):
    """JSON has one kind of numbers; to a schema each of these is an integer."""
    body = f'{{"requests":{{"a":"resources=VCPU:1"}},"domains":"tree","limit":{written}}}'
    answer = send(application, "POST", "/treeclaim/capacity", body=body.encode(), version=VERSION)
    assert answer.status == 200
    assert len(answer.json()["capacity"]["a"]["domains"]) == 1
