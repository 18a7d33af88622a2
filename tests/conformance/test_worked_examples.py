# SPDX-License-Identifier: Apache-2.0
"""Every worked example of contract page 95, over HTTP.

No database decides a response: the search reads an inventory in memory, and how that is loaded from each database
is proved by `gabbits/candidates-answers.yaml` and by `tests/store/reading`.
"""

import re
from contextlib import ExitStack

import pytest

from tests.conformance.worked_examples import sections
from tests.conformance.worlds_over_http import answered, asked, build, in_names, uuid_of
from tests.service import application_on, client_of

SECTIONS = {one.number: one for one in sections()}
EXAMPLES = [
    (section.number, example) for section in SECTIONS.values() for example in section.examples
]


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """A function that returns a client of the service that holds a section's model."""
    built = {}
    resources = ExitStack()

    def service_of(number):
        if number not in built:
            folder = tmp_path_factory.mktemp(f"section{number}")
            client = client_of(resources.enter_context(application_on("sqlite", folder)))
            section = SECTIONS[number]
            queries = [example.query for example in section.examples]
            build(client, section.world, queries, section.used)
            built[number] = client
        return built[number]

    yield service_of
    for client in built.values():
        client.close()
    resources.close()


def ordered(candidates):
    """Put candidates into an order, so that lists with repetitions compare."""
    return sorted(map(str, ((sorted(takes), sorted_mappings(maps)) for takes, maps in candidates)))


def sorted_mappings(mappings):
    return (
        None if mappings is None else sorted((suffix, sorted(uuids)) for suffix, uuids in mappings)
    )


@pytest.mark.parametrize(
    ("number", "example"), EXAMPLES, ids=[example.number for _, example in EXAMPLES]
)
def test_response_matches_the_worked_example(services, number, example):
    section = SECTIONS[number]
    client = services(number)
    body = asked(client, example.query, example.version)
    minor = int(example.version.split(".")[1])
    assert len(body["allocation_requests"]) == example.candidate_count
    if example.candidates is not None and minor >= 12:
        shown = minor >= 34
        expected = [(takes, maps if shown else None) for takes, maps in example.candidates]
        assert ordered(in_names(section.world, body, mappings_shown=shown)) == ordered(expected)
    if example.subset_of is not None:
        without = re.sub(r"&limit=\d+", "", example.query)
        everything = asked(client, without, example.version)
        assert len(everything["allocation_requests"]) == example.subset_of
        for candidate in body["allocation_requests"]:
            assert candidate in everything["allocation_requests"]
    summaries = body["provider_summaries"]
    if example.summary_names is not None:
        names = {uuid_of("provider", summary_name) for summary_name in example.summary_names}
        assert summaries.keys() == names
    if example.summary_count is not None:
        assert len(summaries) == example.summary_count
    newest = answered(client, example.query, "placement 1.39")
    assert answered(client, example.query, "placement 1.39, treeclaim 1.0") == newest


def test_worked_examples_are_complete():
    assert len(SECTIONS) == 45
    assert len(EXAMPLES) == 271
