# SPDX-License-Identifier: Apache-2.0
"""Any number, in any place where one is read, gets a clear refusal or a correct answer."""

import json

import pytest

from tests.api.described import HOST
from tests.api.raw import require_sound, send
from tests.service import make_application

DIGITS = (1, 10, 19, 20, 39, 155, 309, 310, 400)
WHOLE = sorted(
    {str(sign * base) for d in DIGITS for base in (10**d - 1, 10 ** (d - 1)) for sign in (1, -1)}
    | {str(2**power + by) for power in (31, 32, 53, 62, 63, 64, 1024) for by in (-1, 0, 1)}
    | {"0", "00", "0" * 400, "0" * 399 + "1", "-0", "1" * 4300, "1" * 5000}
)
FRACTIONS = [one + (".0", ".5", "e0", "e-3", "E+5")[at % 5] for at, one in enumerate(WHOLE)]
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
    body = json.dumps({"name": "host", "uuid": HOST}).encode()
    assert send(service, "POST", "/resource_providers", body=body).status == 200
    offer(service)
    return service


def offer(service, **inventory):
    """Give the host an inventory."""
    path = f"/resource_providers/{HOST}/inventories"
    generation = send(service, "GET", path).json()["resource_provider_generation"]
    body = {
        "resource_provider_generation": generation,
        "inventories": {"VCPU": {"total": 2**31 - 1, "max_unit": 2**31 - 1, **inventory}},
    }
    assert send(service, "PUT", path, body=json.dumps(body).encode()).status == 200


@pytest.mark.parametrize("amount", [2**63, 2**64 + 1, 10**399 + 7])
def test_an_explanation_repeats_the_amount_exactly(application, amount):
    answer = send(
        application,
        "GET",
        "/allocation_candidates/explain",
        query=f"resources=VCPU:{amount}".encode(),
        version="1.39, treeclaim 1.0",
    )
    assert answer.status == 200
    assert str(amount).encode() in answer.body
    assert answer.json()["feasible"] is False


def test_huge_limit_is_no_limit(application):
    for limit in ("9" * 19, "9" * 400, "9" * 5000):
        query = f"resources=VCPU:1&limit={limit}".encode()
        answer = send(application, "GET", "/allocation_candidates", query=query)
        assert answer.status == 200
        assert len(answer.json()["allocation_requests"]) == 1
    for limit in ("0", "0" * 400, "01", "-1", "1" * 400 + "x"):
        query = f"resources=VCPU:1&limit={limit}".encode()
        assert send(application, "GET", "/allocation_candidates", query=query).status == 400


@pytest.mark.slow
def test_numbers_in_headers_are_accepted_or_refused(application):
    for number in NUMBERS:
        for path in ("/", "/resource_providers", "/nowhere"):
            for version in (number, f"1.{number}", f"{number}.1", f"1.39, treeclaim {number}"):
                require_sound(send(application, "GET", path, version=version))
            given = send(application, "GET", path, content_length=number, content_type="a/b")
            require_sound(given)
            is_number = number.isascii() and number.isdigit()
            assert is_number or given.status == 400
            given = send(
                application, "POST", "/resource_providers", body=b"{}", content_length=number
            )
            require_sound(given)
            assert is_number or given.status == 400
