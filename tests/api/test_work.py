# SPDX-License-Identifier: Apache-2.0
"""No query or body makes the service work for long (contract page 97)."""

import itertools
import json
import sys

import pytest

from tests.api.described import HOST, bodies, described, with_number
from tests.api.raw import require_sound, send
from tests.service import make_application

LONG = 200_000
"""Characters of a text."""

pytestmark = pytest.mark.usefixtures("limited_work")


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """A service with a host."""
    service = make_application(tmp_path_factory.mktemp("work"))
    body = json.dumps({"name": "host", "uuid": HOST}).encode()
    assert send(service, "POST", "/resource_providers", body=body).status == 200
    return service


EXTENDED = "1.39, treeclaim 1.0"
NEWEST = "1.39, treeclaim latest"


def send_soundly(*arguments, **named):
    """Send a request; return its answer, which is as answers have to be."""
    answer = send(*arguments, **named)
    require_sound(answer)
    return answer


REPEATED = {
    "required": "CUSTOM_A",
    "member_of": HOST,
    "in_tree": HOST,
    "resources": "VCPU:1",
    "limit": "1",
    "group_policy": "none",
    "same_subtree": "_A",
    "root_required": "CUSTOM_A",
    "root_member_of": HOST,
    "can_split": "VCPU",
    "isolate": "_A",
    "x": "1",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_repeated_parameter_takes_little_work(application, name):
    """A query is read in one pass, however often it repeats a name."""
    for version in ("1.38", "1.39", EXTENDED):
        for path in ("/resource_providers", "/allocation_candidates"):
            for numbered in (False, True):
                pair = f"{name}={REPEATED[name]}"
                count = LONG // (len(pair) + 6)
                pairs = (
                    pair.replace("=", f"{number}=") if numbered else pair
                    for number in range(count)
                )
                query = "&".join(["resources=VCPU:1", *pairs]).encode()
                send_soundly(application, "GET", path, query=query, version=version)


def uuids(count):
    """Return that many different uuids."""
    return [f"{number:08x}{HOST[8:]}" for number in range(count)]


def many(length):
    """Values in JSON of about so many characters that are wrong in many places, or at the end."""
    count = length // 40
    values = {
        "objects": [{"a": number} for number in range(count)],
        "equal objects": [{"a": 1}] * count,
        "floats": [number * 2.0**61 for number in range(count)],
        "empty lists": [[]] * (length // 3),
        "uuids and one again": [*uuids(count), uuids(1)[0]],
        "names": dict.fromkeys(uuids(count), 0),
        "empty objects by name": {name: {} for name in uuids(count)},
        "one long text": "x" * length,
        "line ends": "\n" * (length // 2),
        "quotes": "\"'" * (length // 3),
        "numbers": [0] * (length // 2),
    }
    texts = {kind: json.dumps(value, separators=(",", ":")) for kind, value in values.items()}
    lists, objects = "[" * 1000 + "]" * 1000, '{"a":' * 900 + "1" + "}" * 900
    texts["nested"] = "[" + ",".join([lists] * (length // 2001)) + "]"
    texts["nested objects"] = "[" + ",".join([objects] * (length // 5500)) + "]"
    return texts


def post_everywhere(application, kind, length):
    """Send each described body with something in one of its members, or instead of it."""
    something = many(length)[kind]
    for method, path, operation in described():
        for value in itertools.islice(bodies(operation), 1):
            usual = json.loads(with_number(value, "1"))
            for body in ("here", *(usual | {name: "here"} for name in usual)):
                text = json.dumps(body).replace('"here"', something)
                send_soundly(application, method, path, body=text.encode(), version=NEWEST)
    path = f"/resource_providers/{HOST}/aggregates"
    send_soundly(application, "PUT", path, body=something.encode(), version="1.18")


@pytest.fixture
def deep_recursion():
    """Allow deeper recursion than by default, as debuggers and hypothesis do."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("deep_recursion")
@pytest.mark.parametrize("kind", many(40))
def test_invalid_body_takes_little_work(application, kind):
    post_everywhere(application, kind, 40_000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", many(40))
def test_invalid_body_of_megabytes_takes_little_work(application, kind):
    post_everywhere(application, kind, 2_000_000)


def test_brackets_in_texts_do_not_count_as_nesting(application):
    """A long body is judged by its depth before it is parsed."""
    name = '"[' * 40 + "[{" * 40 + '\\"' * 5 + '"' + "\\" * 3
    traits = [*([name] * 200), "CUSTOM_NONE"]
    body = json.dumps({"traits": traits, "resource_provider_generation": 0}).encode()
    assert len(body) > 16_384
    answer = send(application, "PUT", f"/resource_providers/{HOST}/traits", body=body)
    assert answer.status == 400
    assert "No such trait" in answer.detail
    for deep in (32, 33):
        text = "[" * deep + '"' + "x" * 20_000 + '"' + "]" * deep
        answer = send(application, "POST", "/resource_providers", body=text.encode())
        assert ("nested too deeply" in answer.detail) is (deep > 32)


def test_last_duplicate_member_of_a_body_wins(application):
    name = '{"name":"a","name":"b",' + '"name":"c",' * 25_000 + '"name":"twice"}'
    answer = send_soundly(application, "POST", "/resource_providers", body=name.encode())
    assert answer.status == 200
    assert answer.json()["name"] == "twice"


def test_error_for_a_long_body_names_the_location(application):
    traits = ["CUSTOM_A"] * 20_000
    body = {"traits": [*traits, ""], "resource_provider_generation": 0}
    path = f"/resource_providers/{HOST}/traits"
    answer = send(application, "PUT", path, body=json.dumps(body).encode())
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert "Failed validating 'minLength' on instance['traits'][20000]" in answer.detail
    body = {"aggregates": uuids(300) + uuids(1), "resource_provider_generation": 0}
    path = f"/resource_providers/{HOST}/aggregates"
    answer = send(application, "PUT", path, body=json.dumps(body).encode())
    assert "has non-unique elements" in answer.detail
    assert "Failed validating 'uniqueItems'" in answer.detail


def test_unknown_name_is_compared_with_few_of_many(application):
    names = [f"CUSTOM_{number:09}_{'ABCDEF' * 30}" for number in range(3_000)]
    entry = {"uuid": HOST, "inventories": {name: {"total": 1} for name in names}}
    body = json.dumps({"providers": [entry], "create_names": True}).encode()
    created = send(application, "POST", "/treeclaim/providers", body=body, version=EXTENDED)
    assert created.status == 200
    query = f"resources={names[-1]}A:1"
    path = "/allocation_candidates"
    answer = send_soundly(application, "GET", path, query=query.encode(), version=EXTENDED)
    assert answer.detail.endswith(f"Did you mean {names[-1]}?")
