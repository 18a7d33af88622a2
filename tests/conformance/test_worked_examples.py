# SPDX-License-Identifier: Apache-2.0
"""Every worked example of contract page 95 and of the extension, over HTTP.

No database decides a response: the search reads an inventory in memory, and how that is loaded from each database
is proved by `gabbits/candidates-answers.yaml` and by `tests/store/reading`.
"""

import json
import re
import uuid
from collections import Counter
from contextlib import ExitStack
from functools import cache

import pytest

from tests.bodies import claim_of
from tests.reference.worked_examples import BEYOND, sections
from tests.service import application_on, client_of

EXTENDED = "1.39, treeclaim 1.0"
PAGE_95 = sections()
SECTIONS = [*PAGE_95, *sections(BEYOND, EXTENDED)]
EXAMPLES = [
    pytest.param(at, example, id=f"{'' if section in PAGE_95 else 'extension '}{example.number}")
    for at, section in enumerate(SECTIONS)
    for example in section.examples
]


def uuid_of(kind, name):
    """The uuid that stands for a name on the page."""
    return str(uuid.uuid5(uuid.UUID(int=95), f"{kind} {name}"))


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """A function that returns a client of the service that holds a section's model."""
    with ExitStack() as resources:

        @cache
        def service_of(at):
            folder = tmp_path_factory.mktemp(f"section{at}")
            application = resources.enter_context(application_on("sqlite", folder))
            client = resources.enter_context(client_of(application))
            build(client, SECTIONS[at])
            return client

        yield service_of


def build(client, section):
    """Create a world through the API, with the names that queries have."""
    queries = " ".join(example.query for example in section.examples)
    for name in sorted(set(re.findall(r"CUSTOM_[A-Z0-9_]+", queries))):
        assert client.put(f"/traits/{name}").is_success
        assert client.put(f"/resource_classes/{name}").is_success
    providers = section.world.providers
    body = {"providers": list(map(entry_of, providers)), "create_names": True}
    headers = {"openstack-api-version": f"placement {EXTENDED}"}
    response = client.post("/treeclaim/providers", json=body, headers=headers)
    assert response.is_success, response.text
    for provider in providers:
        used = {name: stock.used for name, stock in provider.stock.items() if stock.used}
        if used:
            body = claim_of({uuid_of("provider", provider.name): {"resources": used}})
            assert client.put(f"/allocations/{uuid.uuid4()}", json=body).is_success


def entry_of(provider):
    """An entry of a bulk write: a provider with all it has."""
    inventories = {
        name: {key: value for key, value in vars(stock).items() if key != "used"}
        for name, stock in provider.stock.items()
    }
    parent = provider.parent
    return {
        "uuid": uuid_of("provider", provider.name),
        "name": provider.name,
        "parent_provider_uuid": None if parent is None else uuid_of("provider", parent),
        "inventories": inventories,
        "traits": sorted(provider.traits),
        "aggregates": [uuid_of("aggregate", aggregate) for aggregate in provider.aggregates],
    }


def answered(client, query, version):
    """Send a request of the page; return the body of the answer, as bytes."""
    query = re.sub(r"<([\w.]+)>", lambda name: uuid_of("provider", name[1]), query)
    query = re.sub(r"\{([A-Z])\}", lambda name: uuid_of("aggregate", name[1]), query)
    headers = {"openstack-api-version": f"placement {version}"}
    response = client.get(f"/allocation_candidates?{query}", headers=headers)
    assert response.status_code == 200, response.text
    return response.content


def in_names(world, body, *, mappings_shown):
    """Translate an answer's candidates back to the names of a world."""
    names = {uuid_of("provider", provider.name): provider.name for provider in world.providers}
    for candidate in body["allocation_requests"]:
        takes = frozenset(
            (names[provider], name, amount)
            for provider, resources in candidate["allocations"].items()
            for name, amount in resources["resources"].items()
        )
        mappings = frozenset(
            (suffix, frozenset(names[provider] for provider in providers))
            for suffix, providers in candidate.get("mappings", {}).items()
        )
        yield takes, mappings if mappings_shown else None


@pytest.mark.parametrize(("at", "example"), EXAMPLES)
def test_response_matches_the_worked_example(services, at, example):
    section = SECTIONS[at]
    client = services(at)
    body = json.loads(answered(client, example.query, example.version))
    assert len(body["allocation_requests"]) == example.candidate_count
    if example.candidates is not None and example.minor >= 12:
        shown = example.minor >= 34
        expected = Counter((takes, maps if shown else None) for takes, maps in example.candidates)
        assert Counter(in_names(section.world, body, mappings_shown=shown)) == expected
    if example.subset_of is not None:
        without = re.sub(r"&limit=\d+", "", example.query)
        everything = json.loads(answered(client, without, example.version))
        assert len(everything["allocation_requests"]) == example.subset_of
        for candidate in body["allocation_requests"]:
            assert candidate in everything["allocation_requests"]
    summaries = body["provider_summaries"]
    if example.summary_names is not None:
        names = {uuid_of("provider", summary_name) for summary_name in example.summary_names}
        assert summaries.keys() == names
    if example.summary_count is not None:
        assert len(summaries) == example.summary_count
    if section in PAGE_95:
        newest = answered(client, example.query, "1.39")
        assert answered(client, example.query, EXTENDED) == newest


def test_worked_examples_are_complete():
    assert len(PAGE_95) == 45
    assert sum(len(section.examples) for section in PAGE_95) == 271
