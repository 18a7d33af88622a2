# SPDX-License-Identifier: Apache-2.0
"""The service on other servers than its own, under a prefix and at the root."""

import re
import uuid

import httpx
import psutil
import pytest

from tests.server.early_answers import judge
from tests.server.fuzzing import attack
from tests.servers import eventually
from tests.wsgi_servers.recipes import MAX_BODY_BYTES, PREFIXES, SERVERS, Gunicorn

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("web_server")]

CASES = [(server, prefix) for prefix in reversed(PREFIXES) for server in SERVERS]
AT_ROOT = CASES[: len(SERVERS)]
TELLING = AT_ROOT[:2]
"""Servers that report their number of threads to the service: a prefix of the list, so that pytest runs all tests of a
server while it is running."""

OTHER_THREADS = "7"
FUZZED = 300
JSON = {"content-type": "application/json"}
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


def called(case):
    server, prefix = case
    return f"{server.__name__}-{prefix or 'root'}"


@pytest.fixture(scope="module", params=CASES, ids=called)
def recipe(request, tmp_path_factory):
    """A running server."""
    server, prefix = request.param
    recipe = server(tmp_path_factory.mktemp(server.__name__), prefix)
    if request.param in TELLING:
        recipe.settings["OS_TREECLAIM__SERVER_THREADS"] = OTHER_THREADS
    with recipe.running() as started:
        recipe.process = started.process
        yield recipe


@pytest.fixture
def http(recipe):
    """A client of the server, as administrator."""
    with httpx.Client(base_url=recipe.url, headers=HEADERS, timeout=60) as client:
        yield client


@pytest.fixture
def provider(http):
    identifier = str(uuid.uuid4())
    body = {"name": f"host {identifier}", "uuid": identifier}
    created = http.post("/resource_providers", json=body)
    assert created.status_code == 200
    inventories = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096}},
    }
    stored = http.put(f"/resource_providers/{identifier}/inventories", json=inventories)
    assert stored.status_code == 200
    yield created.json()
    assert http.delete(f"/resource_providers/{identifier}").status_code == 204


def test_the_version_document_is_at_the_prefix(recipe):
    # Without the slash this way of authentication wants a token (contract page 05, section 1.1).
    for url, headers in ((recipe.url, HEADERS), (recipe.url + "/", {})):
        answer = httpx.get(url, headers=headers, timeout=60)
        assert answer.status_code == 200
        (version,) = answer.json()["versions"]
        assert version["max_version"] == "1.39"


def test_links_and_locations_have_the_prefix(recipe, http, provider):
    path = f"{recipe.prefix}/resource_providers/{provider['uuid']}"
    assert {link["href"].split("/resource_providers")[0] for link in provider["links"]} == {
        recipe.prefix
    }
    created = http.post(
        "/resource_providers",
        json={"name": str(uuid.uuid4())},
        headers={"openstack-api-version": "placement 1.19"},
    )
    assert created.status_code == 201
    location = created.headers["location"]
    assert location.startswith(f"{recipe.url}/resource_providers/")
    assert http.delete(location).status_code == 204
    assert http.get(f"http://127.0.0.1:{recipe.port}{path}").status_code == 200


def test_every_process_sees_writes_of_the_others(recipe, provider):
    body = {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 1}
    path = f"/resource_providers/{provider['uuid']}/traits"
    once = HEADERS | {"connection": "close"}
    assert httpx.put(recipe.url + path, json=body, headers=once, timeout=60).status_code == 200
    for _ in range(20):
        answer = httpx.get(
            f"{recipe.url}/resource_providers?required=HW_CPU_X86_AVX2", headers=once, timeout=60
        )
        assert [
            resource_provider["uuid"] for resource_provider in answer.json()["resource_providers"]
        ] == [provider["uuid"]]


def test_child_processes_answer_and_are_reaped(recipe, http, provider):
    """Explanations are made by children, whatever a server thinks of processes it did not make."""
    before = {child.pid for child in psutil.Process(recipe.process.pid).children(recursive=True)}
    extended = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
    path = "/allocation_candidates/explain"
    for amount in range(9, 29):
        answer = http.get(path, params={"resources": f"VCPU:{amount}"}, headers=extended)
        assert answer.status_code == 200
        assert answer.json()["feasible"] is False
    missing = http.get(path, params={"resources": "CUSTOM_NIX:1"}, headers=extended)
    assert missing.status_code == 400
    assert "CUSTOM_NIX" in missing.json()["errors"][0]["detail"]

    def is_as_before():
        family = psutil.Process(recipe.process.pid).children(recursive=True)
        return {process.pid for process in family} == before

    eventually(is_as_before, "all children have ended", seconds=120)


def test_long_queries_and_odd_names_arrive_whole(http):
    aggregates = ",".join(str(uuid.uuid4()) for _ in range(500))
    long = http.get("/resource_providers", params={"member_of": f"in:{aggregates}"})
    assert (long.status_code, long.json()) == (200, {"resource_providers": []})
    name = "Größe 100% & mehr / ½"
    created = http.post("/resource_providers", json={"name": name}).json()
    resource_providers = http.get("/resource_providers", params={"name": name}).json()[
        "resource_providers"
    ]
    assert [provider["uuid"] for provider in resource_providers] == [created["uuid"]]
    assert http.delete(f"/resource_providers/{created['uuid']}").status_code == 204


@pytest.mark.parametrize("size", [MAX_BODY_BYTES + 1, 4 * MAX_BODY_BYTES])
def test_a_body_beyond_the_limit_is_refused_and_the_next_request_is_answered(http, size):
    # A client that sends everything before it reads sees the answer, not a reset. The server may then close the
    # connection or drop the rest, as gunicorn does.
    closing = {**JSON, "Connection": "close"}
    refused = http.post("/resource_providers", content=b" " * size, headers=closing)
    assert refused.status_code == 413
    (error,) = refused.json()["errors"]
    assert error["status"] == 413
    assert error["request_id"] == refused.headers["x-openstack-request-id"]
    accepted = http.post("/resource_providers", content=b" " * MAX_BODY_BYTES, headers=JSON)
    assert accepted.status_code == 400
    assert http.get("/resource_providers").status_code == 200


def test_each_request_has_a_line_with_the_whole_path(recipe, http):
    name = str(uuid.uuid4())
    http.get("/resource_providers", params={"name": name})
    line = re.compile(
        rf'127\.0\.0\.1 "GET {recipe.prefix}/resource_providers\?name={name}" status: 200 '
        r"len: \d+ microversion: 1\.39"
    )
    assert eventually(lambda: line.search(recipe.log()), "the line is written", seconds=60)
    assert recipe.log().count(name) == 1


def test_early_response_breaks_no_connection(recipe):
    # uWSGI answers one request for each connection, and Apache up to a hundred; both say so.
    judge(("127.0.0.1", recipe.port), recipe.prefix, keeps=isinstance(recipe, Gunicorn))


@pytest.mark.parametrize("recipe", TELLING, ids=called, indirect=True)
def test_reported_thread_count_has_precedence_over_the_option(recipe):
    assert eventually(
        lambda: "4 threads each" in recipe.log(), "the number is written", seconds=60
    )


@pytest.mark.parametrize("recipe", AT_ROOT, ids=called, indirect=True)
def test_random_bytes_are_refused_without_killing_a_process(recipe):
    # At the root: gunicorn itself answers 500 to paths outside of its prefix.
    attack(("127.0.0.1", recipe.port), range(FUZZED), always_http=False)
    assert httpx.get(recipe.url, headers=HEADERS, timeout=60).status_code == 200
    log = recipe.log()
    for trouble in ("Traceback", "died", "killed by signal", "Segmentation fault"):
        assert trouble not in log
