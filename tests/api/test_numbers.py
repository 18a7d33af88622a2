# SPDX-License-Identifier: Apache-2.0
"""Any number, in any place where one is read, gets a clear refusal or a correct answer."""

import json

import pytest

from tests.api.raw import require_sound, send
from tests.service import make_application

HOST = "10000000-0000-4000-8000-000000000001"
CONSUMER = "20000000-0000-4000-8000-000000000001"

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


def inventory_bodies(number):
    """Bodies of PUT …/inventories/VCPU with a number in each place."""
    for name in (
        "resource_provider_generation",
        "total",
        "reserved",
        "min_unit",
        "max_unit",
        "step_size",
        "allocation_ratio",
    ):
        fields = {"resource_provider_generation": "1", "total": "10"} | {name: number}
        yield "{" + ",".join(f'"{key}":{value}' for key, value in fields.items()) + "}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_in_bodies_of_inventories(application, part):
    for number in NUMBERS[part::8]:
        for body in inventory_bodies(number):
            for method, path, text in (
                ("PUT", f"/resource_providers/{HOST}/inventories/VCPU", body),
                (
                    "PUT",
                    f"/resource_providers/{HOST}/inventories",
                    f'{{"resource_provider_generation":{number},"inventories":{{"VCPU":{body}}}}}',
                ),
                (
                    "POST",
                    f"/resource_providers/{HOST}/inventories",
                    '{"resource_class":"DISK_GB",' + body[1:],
                ),
            ):
                answer = send(application, method, path, body=text.encode())
                require_sound(answer)


@pytest.mark.parametrize("part", range(8))
def test_in_bodies_of_claims_and_of_other_writes(application, part):
    for number in NUMBERS[part::8]:
        for amount, generation, provider in ((number, "null", "0"), ("1", number, number)):
            share = f'{{"resources":{{"VCPU":{amount}}},"generation":{provider}}}'
            claim = (
                f'{{"allocations":{{"{HOST}":{share}}},"consumer_generation":{generation},'
                '"project_id":"p","user_id":"u","consumer_type":"A"}'
            )
            empty = claim.replace(f'"{HOST}":{share}', "")
            stocks = '"inventories":{"VCPU":{"total":1000}}'
            reshaped = (
                f'{{"inventories":{{"{HOST}":{{"resource_provider_generation":{provider},'
                f'{stocks}}}}},"allocations":{{"{CONSUMER}":{claim}}}}}'
            )
            for method, path, body in (
                ("PUT", f"/allocations/{CONSUMER}", claim),
                ("PUT", f"/allocations/{CONSUMER}", empty),
                ("POST", "/allocations", f'{{"{CONSUMER}":{claim}}}'),
                ("POST", "/reshaper", reshaped),
                (
                    "PUT",
                    f"/resource_providers/{HOST}/traits",
                    f'{{"resource_provider_generation":{number},"traits":[]}}',
                ),
                (
                    "PUT",
                    f"/treeclaim/providers/{HOST}/attributes",
                    f'{{"resource_provider_generation":{generation},"attributes":{{"a":{number}}}}}',
                ),
                (
                    "PUT",
                    f"/resource_providers/{HOST}/aggregates",
                    f'{{"resource_provider_generation":{number},"aggregates":[]}}',
                ),
            ):
                version = "1.39, treeclaim latest"
                answer = send(application, method, path, body=body.encode(), version=version)
                require_sound(answer)


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


def test_a_limit_beyond_everything_is_no_limit(application):
    for limit in ("9" * 19, "9" * 400, "9" * 5000):
        query = f"resources=VCPU:1&limit={limit}".encode()
        answer = send(application, "GET", "/allocation_candidates", query=query)
        assert answer.status == 200
        assert len(answer.json()["allocation_requests"]) == 1
    for limit in ("0", "0" * 400, "01", "-1", "1" * 400 + "x"):
        query = f"resources=VCPU:1&limit={limit}".encode()
        assert send(application, "GET", "/allocation_candidates", query=query).status == 400


@pytest.mark.slow
def test_in_headers(application):
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
