# SPDX-License-Identifier: Apache-2.0
"""Text that a database cannot compare or store has the results of SQLite, never a 503."""

import urllib.parse
import uuid
from contextlib import ExitStack

import pytest
from sqlalchemy.engine import make_url

from tests.bodies import claim_of
from tests.databases import server_of
from tests.faults.harness.bodies import assert_tells_nothing
from tests.resources import needs
from tests.service import client_of, make_application, schema_on, start_on

pytestmark = pytest.mark.slow

HOST = "11111111-0000-4000-8000-000000000001"
CONSUMER = "22222222-0000-4000-8000-000000000001"
AGGREGATE = "33333333-0000-4000-8000-000000000001"
PROJECT, USER = "project", "person"

STRANGE = {
    "beyond the basic plane": "\U0001f600",
    "a name and more beyond the basic plane": f"{PROJECT}\U0001f600",
    "NUL": "\0",
    "a name and NUL": f"{PROJECT}\0",
    "a last character of the basic plane": "\uffff",
    "a character that takes two": "e\u0301",
    "a percent sign": "%s%(names)s%",
    "a quotation": "';\"\\",
    "long": "x" * 5000,
    "long beyond the basic plane": "\U0001f600" * 300,
}
OTHER_SPELLINGS = {
    "upper case": PROJECT.upper(),
    "a space behind": f"{PROJECT} ",
    "an accent": "pr\u00f3ject",
}

READS = (
    "/resource_providers/{}",
    "/resource_providers/{}/inventories",
    "/resource_providers/{}/inventories/VCPU",
    f"/resource_providers/{HOST}/inventories/{{}}",
    "/resource_providers/{}/usages",
    "/resource_providers/{}/aggregates",
    "/resource_providers/{}/traits",
    "/resource_providers/{}/allocations",
    "/resource_classes/{}",
    "/traits/{}",
    "/allocations/{}",
    "/resource_providers?name={}",
    "/resource_providers?uuid={}",
    "/resource_providers?member_of={}",
    "/resource_providers?in_tree={}",
    "/resource_providers?required={}",
    "/resource_providers?resources={}:1",
    "/traits?name=startswith:{}",
    "/traits?name=in:{}",
    "/usages?project_id={}",
    f"/usages?project_id={PROJECT}&user_id={{}}",
    f"/usages?project_id={PROJECT}&consumer_type={{}}",
    "/allocation_candidates?resources={}:1",
    "/allocation_candidates?resources=VCPU:1&required={}",
    "/allocation_candidates?resources=VCPU:1&member_of={}",
    "/allocation_candidates?resources=VCPU:1&in_tree={}",
)
DELETIONS = (
    "/resource_providers/{}",
    "/resource_providers/{}/inventories",
    f"/resource_providers/{HOST}/inventories/{{}}",
    "/resource_providers/{}/traits",
    "/resource_classes/{}",
    "/traits/{}",
    "/allocations/{}",
)


def claim(text="", **changes):
    body = claim_of({HOST: {"resources": {"VCPU": 1}}}, project_id=PROJECT, user_id=USER)
    return body | dict.fromkeys(changes, text)


def writes(text):
    """Return method, path and body of writes with a text in each place."""
    quoted = urllib.parse.quote(text, safe="")
    stock = {"total": 8}
    generation = {"resource_provider_generation": 1}
    new_path = f"/allocations/{uuid.uuid5(uuid.NAMESPACE_OID, repr(text))}"
    yield "POST", "/resource_providers", {"name": text}
    yield "POST", "/resource_providers", {"name": "new", "uuid": text}
    yield "POST", "/resource_providers", {"name": "new", "parent_provider_uuid": text}
    yield "PUT", f"/resource_providers/{quoted}", {"name": "new"}
    yield "PUT", f"/resource_providers/{HOST}", {"name": text}
    yield "PUT", f"/resource_providers/{quoted}/inventories", {"inventories": {}, **generation}
    yield (
        "PUT",
        f"/resource_providers/{HOST}/inventories",
        {"inventories": {text: stock}, "resource_provider_generation": 0},
    )
    yield "PUT", f"/resource_providers/{HOST}/inventories/{quoted}", stock | generation
    yield "POST", f"/resource_providers/{HOST}/inventories", stock | {"resource_class": text}
    yield "PUT", f"/resource_providers/{quoted}/aggregates", {"aggregates": [], **generation}
    yield "PUT", f"/resource_providers/{HOST}/aggregates", {"aggregates": [text], **generation}
    yield "PUT", f"/resource_providers/{quoted}/traits", {"traits": [], **generation}
    yield "PUT", f"/resource_providers/{HOST}/traits", {"traits": [text], **generation}
    yield "POST", "/resource_classes", {"name": text}
    yield "PUT", f"/resource_classes/{quoted}", None
    yield "PUT", f"/traits/{quoted}", None
    yield "PUT", f"/allocations/{quoted}", claim()
    yield "PUT", new_path, claim(text, project_id=text)
    yield "PUT", new_path, claim(text, user_id=text)
    yield "PUT", new_path, claim(text, consumer_type=text)
    yield "PUT", new_path, claim() | {"allocations": {text: {"resources": {"VCPU": 1}}}}
    yield "PUT", new_path, claim() | {"allocations": {HOST: {"resources": {text: 1}}}}
    yield "POST", "/allocations", {text: claim()}
    yield (
        "POST",
        "/reshaper",
        {
            "inventories": {text: {"inventories": {}, **generation}},
            "allocations": {CONSUMER: claim()},
        },
    )


def furnish(client):
    """Create a host with inventory, trait and aggregate, and a consumer on it."""
    assert client.post("/resource_providers", json={"name": PROJECT, "uuid": HOST}).is_success
    stock = {"inventories": {"VCPU": {"total": 100}}, "resource_provider_generation": 0}
    assert client.put(f"/resource_providers/{HOST}/inventories", json=stock).is_success
    body = {"aggregates": [AGGREGATE], "resource_provider_generation": 1}
    assert client.put(f"/resource_providers/{HOST}/aggregates", json=body).is_success
    assert client.put(f"/allocations/{CONSUMER}", json=claim()).status_code == 204


def tunnelled(application):
    """Encode paths as WSGI requires, which the test client does not: bytes as latin-1."""

    def call(environment, start_response):
        path = environment["PATH_INFO"].encode().decode("latin-1")
        return application(environment | {"PATH_INFO": path}, start_response)

    return call


@pytest.fixture(scope="module")
def sqlite_client(tmp_path_factory):
    application = make_application(tmp_path_factory.mktemp("sqlite"))
    with client_of(tunnelled(application)) as client:
        client.headers["x-roles"] = "admin,service"
        furnish(client)
        yield client


PLACES = [
    pytest.param("postgresql", marks=needs("postgresql")),
    pytest.param("mariadb utf8mb3", marks=needs("mariadb")),
    pytest.param("mariadb utf8mb4", marks=needs("mariadb")),
]


@pytest.fixture(scope="module", params=PLACES)
def client(request, tmp_path_factory):
    """A client of a service on a server's database; on MariaDB the tables are utf8mb3."""
    kind, _, charset = request.param.partition(" ")
    server = server_of(kind)
    folder = tmp_path_factory.mktemp("other")
    with ExitStack() as stack:
        url = make_url(stack.enter_context(server.database(folder)))
        if charset:
            url = url.set(query={"charset": charset})
        database = url.render_as_string(hide_password=False)
        schema_on(database)
        new_client = client_of(tunnelled(stack.enter_context(start_on(database, folder))))
        new_client.headers["x-roles"] = "admin,service"
        furnish(stack.enter_context(new_client))
        yield new_client


@pytest.mark.parametrize("kind", [*STRANGE, *OTHER_SPELLINGS])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_reads_and_deletions_match_sqlite(client, sqlite_client, method, kind):
    text = (STRANGE | OTHER_SPELLINGS)[kind]
    for path in READS if method == "GET" else DELETIONS:
        where = path.format(urllib.parse.quote(text, safe=""))
        expected, actual = (side.request(method, where) for side in (sqlite_client, client))
        assert actual.status_code == expected.status_code, (path, actual.text, expected.text)
        if expected.is_success:
            assert method == "GET", path
            assert actual.text == expected.text, path
        else:
            assert_tells_nothing(actual.text.replace(text, ""), None)


@pytest.mark.parametrize("kind", STRANGE)
def test_unstorable_text_is_refused_and_other_writes_match_sqlite(client, sqlite_client, kind):
    for method, path, body in writes(STRANGE[kind]):
        expected = sqlite_client.request(method, path, json=body)
        answer = client.request(method, path, json=body)
        where = (method, path, body, answer.text, expected.text)
        if expected.is_success:
            # Both databases may have stored the text, so the next writes must find equal states.
            assert answer.status_code in {expected.status_code, 400}, where
            undo(sqlite_client, method, path, expected)
            undo(client, method, path, answer)
        else:
            assert answer.status_code == expected.status_code, where
        assert_tells_nothing(answer.text.replace(STRANGE[kind], ""))


def undo(client, method, path, answer):
    """Revert the writes."""
    if not answer.is_success:
        return
    if path == "/resource_providers":
        assert client.delete(f"{path}/{answer.json()['uuid']}").status_code == 204
    elif path.startswith("/allocations/"):
        assert client.delete(path).status_code == 204
    elif (method, path) == ("PUT", f"/resource_providers/{HOST}"):
        assert client.put(path, json={"name": PROJECT}).status_code == 200
