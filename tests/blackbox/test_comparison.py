# SPDX-License-Identifier: Apache-2.0
"""The comparison with another service: its requests repeat, and its answers may be limited."""

import json
from collections import Counter
from random import Random

import pytest

from tests.blackbox import differences, reads, worlds, writes
from tests.blackbox.endpoint import Endpoint
from tests.blackbox.episode import Episode, Sides
from tests.blackbox.pools import Pool
from tests.blackbox.requests import Request
from tests.service import client_of, make_application
from treeclaim.comparison.comparison import Response, ResponsePair

SEARCH_OPTIONS = {
    "placement.allocation_candidates_generation_strategy": "breadth-first",
    "workarounds.optimize_for_wide_provider_trees": "true",
}


def answer(document, status=200, **headers):
    given = {"content-type": "application/json"} | headers
    return Response(status, given, json.dumps(document), document)


def refusal(status, detail, code="placement.undefined_code"):
    return answer({"errors": [{"status": status, "detail": detail, "code": code}]}, status)


def candidates(*names):
    entries = [{"allocations": {name: {"resources": {"VCPU": 1}}}} for name in names]
    return answer({"allocation_requests": entries, "provider_summaries": {}})


def test_limited_candidate_missing_from_the_full_list_is_a_difference():
    assert not differences.outside(candidates("a"), candidates("a", "b"))
    assert differences.outside(candidates("c"), candidates("a", "b"))


def test_known_difference_is_recognised_by_its_request():
    path = "/allocation_candidates?resources=VCPU:1&required1=CUSTOM_X&resources1=VCPU:1"
    ours, theirs = refusal(400, "No such trait(s): CUSTOM_X."), candidates()
    unnoticed = differences.recognised(ResponsePair(Request("GET", path), ours, theirs))
    assert unnoticed is not None
    assert unnoticed.name == "N8"
    assert differences.recognised(ResponsePair(Request("GET", path), theirs, ours)) is None


def requests_of(seed):
    pool = Pool(Random(seed))
    planted = [str(request) for request in worlds.plant(pool)]
    return planted + [str(kind(pool)) for _ in range(200) for kind in (reads.read, writes.write)]


def test_equal_seeds_make_equal_requests():
    assert requests_of(7) == requests_of(7)
    assert requests_of(7) != requests_of(8)


@pytest.fixture
def sides(tmp_path):
    """Two services, of which the one searches with every other option than the default."""
    services = []
    for name, options in (("ours", SEARCH_OPTIONS), ("theirs", {})):
        folder = tmp_path / name
        folder.mkdir()
        services.append(Endpoint(client_of(make_application(folder, **options))))
    with services[0], services[1]:
        ours, theirs = services
        yield Sides(ours, theirs)


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]


@pytest.mark.parametrize("seed", SEEDS)
def test_search_options_change_no_response(sides, seed):
    totals = Counter()
    episode = Episode(
        sides, Random(seed), note=lambda name: totals.update([name]), count=lambda _: None
    )
    findings = list(episode.run(60, 5))
    assert not findings, "\n".join(
        f"{finding.exchange.request}: {[str(difference) for difference in finding.differences]}"
        for finding in findings
    )
    assert not totals
