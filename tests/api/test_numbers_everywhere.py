# SPDX-License-Identifier: Apache-2.0
"""Any number in any place of any operation, new ones too, gets a clear refusal or a sound answer."""

import base64
import json
import re
from itertools import count
from urllib.parse import quote

import pytest

from tests.api.described import (
    CONSUMER,
    DESCRIBED,
    FORMS,
    NUMBER,
    bodies,
    described,
    parameters,
)
from tests.api.raw import require_sound, send
from tests.api.test_numbers import NUMBERS, application
from tests.bodies import wanted_by

__all__ = ["application"]

VERSION = "1.39, treeclaim latest"


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
    for method, path, operation in described():
        for value in bodies(operation):
            for body in places(value):
                yield method, path, "", body
        for name in parameters(operation):
            for form in (*FORMS.get(name, ()), NUMBER, *markers(name, path)):
                yield method, path, f"{name}={form}", None


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
    refused, tried = [], [call for call in CALLS if call[3] is not None]
    for method, path, _, body in tried:
        answer = send(
            application, method, path, body=body.replace(NUMBER, "1").encode(), version=VERSION
        )
        if answer.status == 400 and "does not validate" in answer.detail:
            refused.append((method, path, body, answer.detail[:300]))
    assert refused == []
    paths = {path for path, methods in DESCRIBED.items() if "requestBody" in str(methods)}
    assert len({call[1] for call in tried}) > len(paths) / 2


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
