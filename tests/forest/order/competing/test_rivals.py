# SPDX-License-Identifier: Apache-2.0
"""Where slots compete for providers, a search does not go through all ways to serve them."""

import pytest

from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.solve.partial.combiner import Combiner
from treeclaim.model.extension.order import Order, Preference, Term, TermName
from treeclaim.model.request import CandidateRequest, RequestGroup

DEVICES = 16
FAST = "CUSTOM_FAST"

UNLIKE = [(100 + 7 * number, number % 5) for number in range(DEVICES)]
SMALL = [(8 + number % 4, number % 3) for number in range(DEVICES)]
HALVES = [(8192, number if number < 7 else number + 4) for number in range(DEVICES)]
"""The best of eight has a score in the middle between two that are shown, as 16 binary digits give."""


@pytest.fixture
def seen(monkeypatch):
    """How many partial candidates were looked at, for each step."""
    counts = []
    extended = Combiner.extended

    def counted(combiner, *arguments, **options):
        grown, taken = extended(combiner, *arguments, **options)
        counts.append(len(grown))
        return grown, taken

    monkeypatch.setattr(Combiner, "extended", counted)
    return counts


def host_of(devices):
    """A host with some devices, each a pair of total and used; every fifth is a fast one."""
    return forest_of(
        [
            record(1, inventories={"VCPU": 64}),
            *(
                record(
                    2 + number,
                    1,
                    1,
                    {"CUSTOM_DEVICE": device},
                    traits=[FAST] if number % 5 == 4 else [],
                )
                for number, device in enumerate(devices)
            ),
        ]
    )


def first_of(devices, amounts, term, *, isolated, limit=1):
    """The answer of an ordered search for groups of some amounts."""
    groups = tuple(
        RequestGroup(f"_{number}", {"CUSTOM_DEVICE": amount})
        for number, amount in enumerate(amounts)
    )
    suffixes = [group.suffix for group in groups]
    preferences = (
        tuple(Preference(suffix, FAST) for suffix in suffixes)
        if term is TermName.PREFERRED
        else ()
    )
    request = CandidateRequest(
        groups,
        limit=limit,
        isolated=frozenset(suffixes) if isolated else frozenset(),
        order=Order((Term(term),), preferences),
    )
    return answer_of(host_of(devices), request)


def most_seen(groups):
    """How many partial candidates may be looked at: some for nothing, then some for each step."""
    return thresholds.LOOSE_CANDIDATES + (groups + 4) * thresholds.BEST_PAIRS


@pytest.mark.parametrize("groups", [8, 10, 12, 16])
@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("devices", [UNLIKE, HALVES], ids=["unlike", "halves"])
def test_the_emptiest_of_unlike_devices_are_found_at_once(seen, devices, groups, isolated):
    first_of(devices, [1] * groups, TermName.SPREAD_PROVIDERS, isolated=isolated)
    assert sum(seen) < most_seen(groups)


@pytest.mark.parametrize("groups", [8, 16])
@pytest.mark.parametrize("term", [TermName.PACK_PROVIDERS, TermName.PREFERRED])
@pytest.mark.parametrize("isolated", [True, False])
def test_other_terms_let_groups_compete_too(seen, term, groups, isolated):
    first_of(UNLIKE, [1] * groups, term, isolated=isolated)
    assert sum(seen) < most_seen(groups)


@pytest.mark.parametrize(
    "term", [TermName.SPREAD_PROVIDERS, TermName.PACK_PROVIDERS, TermName.PREFERRED]
)
def test_isolated_groups_may_want_different_amounts(seen, term):
    first_of(SMALL, [1, 2] * 8, term, isolated=True)
    assert sum(seen) < most_seen(16)


def test_groups_that_may_share_a_device_may_want_different_amounts(seen):
    first_of(SMALL, [1, 2] * 5, TermName.SPREAD_PROVIDERS, isolated=False)
    assert sum(seen) < most_seen(10)


def test_more_candidates_cost_as_much_more(seen):
    answer = first_of(UNLIKE, [1] * 12, TermName.SPREAD_PROVIDERS, isolated=True, limit=200)
    assert len(answer["scores"]) == 200
    assert sum(seen) < most_seen(12) + 200 * 12 * DEVICES


def test_the_emptiest_devices_are_given_out_in_the_usual_order():
    answer = first_of(UNLIKE, [1] * 10, TermName.SPREAD_PROVIDERS, isolated=True)
    filled = sorted(
        ((used + 1) / total, provider_uuid(2 + number))
        for number, (total, used) in enumerate(UNLIKE)
    )[:10]
    (candidate,) = answer["allocation_requests"]
    given = [candidate["mappings"][f"_{number}"][0] for number in range(10)]
    assert given == sorted(uuid for _, uuid in filled)
    assert answer["scores"] == [round(1 - sum(value for value, _ in filled) / 10, 12)]
