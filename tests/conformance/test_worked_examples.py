# SPDX-License-Identifier: Apache-2.0
"""Every worked example of contract page 95, over HTTP."""

import json
import re
import uuid
from contextlib import ExitStack

import pytest

from tests.conformance.worked_examples import sections
from tests.conftest import kinds_wanted
from tests.databases import MissingServerError, server_of
from tests.service import application_on, client_of

SECTIONS = {one.number: one for one in sections()}
EXAMPLES = [(section.number, one) for section in SECTIONS.values() for one in section.examples]
_NAMESPACE = uuid.UUID(int=95)


def uuid_of(kind, name):
    """The uuid that stands for a name on the page."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind} {name}"))


def pytest_generate_tests(metafunc):
    """Ask on each database that is wanted."""
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", kinds_wanted(metafunc.config), scope="module")


@pytest.fixture(scope="module")
def services(kind, tmp_path_factory):
    """A function that returns a client of the service that holds a section's model."""
    try:
        server_of(kind)
    except MissingServerError as missing:
        pytest.skip(str(missing))
    built = {}
    resources = ExitStack()

    def service_of(number):
        if number not in built:
            folder = tmp_path_factory.mktemp(f"section{number}")
            client = client_of(resources.enter_context(application_on(kind, folder)))
            build(client, SECTIONS[number])
            built[number] = client
        return built[number]

    yield service_of
    for client in built.values():
        client.close()
    resources.close()


def build(client, section):
    """Create a section's model through the API."""
    create_names(client, section)
    for provider in section.world.providers:
        create_provider(client, provider)
    for provider, amounts in section.used.items():
        body = {
            "allocations": {uuid_of("provider", provider): {"resources": amounts}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        put(client, f"/allocations/{uuid.uuid4()}", body)


def create_names(client, section):
    """Create all custom names of a section, those that only its queries have as well."""
    queries = " ".join(example.query for example in section.examples)
    words = set(re.findall(r"CUSTOM_[A-Z0-9_]+", queries))
    for provider in section.world.providers:
        words |= provider.traits | provider.stock.keys()
    for word in sorted(one for one in words if one.startswith("CUSTOM_")):
        put(client, f"/traits/{word}", None)
        put(client, f"/resource_classes/{word}", None)


def create_provider(client, provider):
    """Create one provider with all it has."""
    me = uuid_of("provider", provider.name)
    body = {"name": provider.name, "uuid": me}
    if provider.parent is not None:
        body["parent_provider_uuid"] = uuid_of("provider", provider.parent)
    assert client.post("/resource_providers", json=body).status_code == 200
    inventories = {
        name: {key: value for key, value in vars(stock).items() if key != "used"}
        for name, stock in provider.stock.items()
    }
    for part, value in (
        ("inventories", {"inventories": inventories}),
        ("traits", {"traits": sorted(provider.traits)}),
        ("aggregates", {"aggregates": [uuid_of("aggregate", one) for one in provider.aggregates]}),
    ):
        if any(value.values()):
            generation = client.get(f"/resource_providers/{me}").json()["generation"]
            value["resource_provider_generation"] = generation
            put(client, f"/resource_providers/{me}/{part}", value)


def put(client, path, body):
    """Put something that must be taken."""
    response = client.put(path, json=body)
    assert response.is_success, (path, body, response.text)


def answered(client, query, versions):
    """Ask a request of the page and return the body of the answer, as bytes."""
    query = re.sub(r"<([\w.]+)>", lambda name: uuid_of("provider", name.group(1)), query)
    query = re.sub(r"\{([A-Z])\}", lambda name: uuid_of("aggregate", name.group(1)), query)
    response = client.get(
        f"/allocation_candidates?{query}",
        headers={"openstack-api-version": versions},
    )
    assert response.status_code == 200, response.text
    return response.content


def asked(client, query, version):
    """Ask a request of the page and return the body of the answer."""
    return json.loads(answered(client, query, f"placement {version}"))


def in_names(section, body, *, mappings_shown):
    """Translate an answer's candidates back to the page's names."""
    names = {uuid_of("provider", one.name): one.name for one in section.world.providers}
    found = []
    for candidate in body["allocation_requests"]:
        takes = frozenset(
            (names[provider], name, amount)
            for provider, given in candidate["allocations"].items()
            for name, amount in given["resources"].items()
        )
        mappings = frozenset(
            (suffix, frozenset(names[one] for one in providers))
            for suffix, providers in candidate.get("mappings", {}).items()
        )
        found.append((takes, mappings) if mappings_shown else (takes, None))
    return found


def ordered(candidates):
    """Put candidates into an order, so that lists with repetitions compare."""
    return sorted(map(str, ((sorted(takes), sorted_mappings(maps)) for takes, maps in candidates)))


def sorted_mappings(mappings):
    return None if mappings is None else sorted((one, sorted(some)) for one, some in mappings)


@pytest.mark.parametrize(
    ("number", "example"), EXAMPLES, ids=[example.number for _, example in EXAMPLES]
)
def test_the_answer_is_the_one_on_the_page(services, number, example):
    section = SECTIONS[number]
    client = services(number)
    body = asked(client, example.query, example.version)
    minor = int(example.version.split(".")[1])
    assert len(body["allocation_requests"]) == example.candidate_count
    if example.candidates is not None and minor >= 12:
        shown = minor >= 34
        expected = [(takes, maps if shown else None) for takes, maps in example.candidates]
        assert ordered(in_names(section, body, mappings_shown=shown)) == ordered(expected)
    if example.subset_of is not None:
        without = re.sub(r"&limit=\d+", "", example.query)
        everything = asked(client, without, example.version)
        assert len(everything["allocation_requests"]) == example.subset_of
        for candidate in body["allocation_requests"]:
            assert candidate in everything["allocation_requests"]
    summaries = body["provider_summaries"]
    if example.summary_names is not None:
        names = {uuid_of("provider", one) for one in example.summary_names}
        assert summaries.keys() == names
    if example.summary_count is not None:
        assert len(summaries) == example.summary_count


@pytest.mark.parametrize(
    ("number", "example"), EXAMPLES, ids=[example.number for _, example in EXAMPLES]
)
def test_the_extension_changes_no_answer_if_it_is_not_used(services, number, example):
    client = services(number)
    plain = answered(client, example.query, "placement 1.39")
    assert answered(client, example.query, "placement 1.39, treeclaim 1.0") == plain


def test_the_page_has_all_its_examples():
    assert len(SECTIONS) == 45
    assert len(EXAMPLES) == 271
