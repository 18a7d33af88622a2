# SPDX-License-Identifier: Apache-2.0
"""Every worked example of contract page 95 and of the extension, over HTTP.

No database decides a response: the search reads an inventory in memory, and how that is loaded from each database
is proved by `gabbits/candidates-answers.yaml` and by `tests/store/reading`.
"""

import re
from contextlib import ExitStack

import pytest

from tests.conformance.worlds_over_http import answered, asked, build, in_names, uuid_of
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


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """A function that returns a client of the service that holds a section's model."""
    built = {}
    resources = ExitStack()

    def service_of(at):
        if at not in built:
            folder = tmp_path_factory.mktemp(f"section{at}")
            client = client_of(resources.enter_context(application_on("sqlite", folder)))
            section = SECTIONS[at]
            build(client, section.world, [example.query for example in section.examples])
            built[at] = client
        return built[at]

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


@pytest.mark.parametrize(("at", "example"), EXAMPLES)
def test_response_matches_the_worked_example(services, at, example):
    section = SECTIONS[at]
    client = services(at)
    body = asked(client, example.query, example.version)
    assert len(body["allocation_requests"]) == example.candidate_count
    if example.candidates is not None and example.minor >= 12:
        shown = example.minor >= 34
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
    if section in PAGE_95:
        newest = answered(client, example.query, "placement 1.39")
        assert answered(client, example.query, f"placement {EXTENDED}") == newest


def test_worked_examples_are_complete():
    assert len(PAGE_95) == 45
    assert sum(len(section.examples) for section in PAGE_95) == 271
