# SPDX-License-Identifier: Apache-2.0
"""Any number in any place of any operation, new ones too, gets a clear refusal or a sound answer."""

import json
import re
from itertools import count
from urllib.parse import quote

import pytest

from tests.api.described import (
    DESCRIBED,
    FORMS,
    HOST,
    NUMBER,
    bodies,
    described,
    parameters,
)
from tests.api.raw import require_sound, send
from tests.bodies import add_hosts
from tests.service import client_of, make_application

VERSION = "1.39, treeclaim latest"


DIGITS = (1, 10, 19, 20, 39, 155, 309, 310, 400)
WHOLE = sorted(
    {str(sign * base) for d in DIGITS for base in (10**d - 1, 10 ** (d - 1)) for sign in (1, -1)}
    | {str(2**power + by) for power in (31, 32, 53, 62, 63, 64, 1024) for by in (-1, 0, 1)}
    | {"0", "00", "0" * 400, "0" * 399 + "1", "-0", "1" * 4300, "1" * 5000}
)
FRACTIONS = [number + (".0", ".5", "e0", "e-3", "E+5")[at % 5] for at, number in enumerate(WHOLE)]
STRANGE = [
    "1e308",
    "1e309",
    "1e400",
    "-1e400",
    "1e-400",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e",
    ".",
]
STRANGE += ["0." + "9" * 400, "9" * 309 + "." + "9" * 400, "1_000", "0x10", "+1", "true"]
NUMBERS = WHOLE + FRACTIONS + STRANGE


@pytest.fixture
def application(tmp_path):
    """A service with a host."""
    service = make_application(tmp_path)
    with client_of(service) as client:
        add_hosts(client, HOST, VCPU=2**31 - 1)
    return service


def places(value):
    """Yield bodies with the number in one place, and harmless ones in the others."""
    before, *others = re.split(f'("{NUMBER}"|{NUMBER})', json.dumps(value))[::2]
    for chosen in range(len(others)):
        yield before + "".join(
            (NUMBER if at == chosen else "1") + text for at, text in enumerate(others)
        )


def calls():
    """Method, path, query and body of each place; the number stands in one of them."""
    for method, path, operation in described():
        for value in bodies(operation):
            for body in places(value):
                yield method, path, "", body
        for name in parameters(operation):
            for form in (*FORMS.get(name, ()), NUMBER):
                yield method, path, f"{name}={form}", None


CALLS = list(dict.fromkeys(calls()))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_numbers_in_every_described_field_are_handled(application, part):
    turns, stride = count(), 6
    for method, path, query, body in CALLS[part::4]:
        needed = "resources=VCPU:1&" if path.startswith("/allocation_candidates") else ""
        # Each number meets many places, and each place many numbers, though not all of them.
        for number in NUMBERS[next(turns) % stride :: stride]:
            written = None if body is None else body.replace(NUMBER, number).encode()
            text = query.replace(NUMBER, quote(number)).encode()
            if needed and not text.startswith(b"resources="):
                text = needed.encode() + text
            # Waiting for changes takes the requested time.
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


@pytest.mark.slow
def test_numbers_in_headers_are_accepted_or_refused(application):
    for number in NUMBERS:
        for path in ("/", "/resource_providers", "/nowhere"):
            for version in (number, f"1.{number}", f"{number}.1", f"1.39, treeclaim {number}"):
                require_sound(send(application, "GET", path, version=version))
            answer = send(application, "GET", path, content_length=number, content_type="a/b")
            require_sound(answer)
            is_number = number.isascii() and number.isdigit()
            assert is_number or answer.status == 400
            answer = send(
                application, "POST", "/resource_providers", body=b"{}", content_length=number
            )
            require_sound(answer)
            assert is_number or answer.status == 400
