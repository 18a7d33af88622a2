# SPDX-License-Identifier: Apache-2.0
"""Groups that are all unlike, by the device that each prefers or may not have, cost no more than alike ones.

Counted is what is judged closely: what a partial candidate becomes with each option of a slot, or alone.
"""

import pytest

from tests.forest import building
from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.forest.order.competing.completions import Completions
from treeclaim.forest.order.scoring import Scoring
from treeclaim.model.changes import Catalogue, CatalogueEntry
from treeclaim.model.extension.order import Order, Preference, Term, TermName
from treeclaim.model.request import CandidateRequest, ProviderConditions, RequestGroup

DEVICES = 16
DEVICE = "CUSTOM_DEVICE"
OWN = tuple(f"CUSTOM_OWN_{number}" for number in range(DEVICES))
"""The trait of each device."""

SPREAD, PACK, PREFERRED = (
    TermName.SPREAD_PROVIDERS,
    TermName.PACK_PROVIDERS,
    TermName.PREFERRED,
)
ORDERS = {
    "spread": [(SPREAD, 1)],
    "pack": [(PACK, 1)],
    "preferred": [(PREFERRED, 1)],
    "spread and preferred": [(SPREAD, 2), (PREFERRED, 3)],
    "pack and preferred": [(PACK, 2), (PREFERRED, 3)],
}


@pytest.fixture
def host(monkeypatch):
    """A host with unlike devices, each with a trait of its own."""
    traits = (*building.TRAITS, *OWN)
    catalogue = Catalogue.of(
        [CatalogueEntry(number, name, 0.0) for number, name in enumerate(traits, 1)],
        [CatalogueEntry(number, name, 0.0) for number, name in enumerate(building.CLASSES)],
    )
    monkeypatch.setattr(building, "TRAITS", traits)
    monkeypatch.setattr(building, "CATALOGUE", catalogue)
    devices = [
        record(2 + number, 1, 1, {DEVICE: (10 + number % 5, number % 3)}, traits=[trait])
        for number, trait in enumerate(OWN)
    ]
    return forest_of([record(1, inventories={"VCPU": 64}), *devices])


@pytest.fixture
def judged(monkeypatch):
    """What was judged closely: for each time, whether all options were judged together."""
    found = []
    of_options, closest_bounds = Completions.of_options, Scoring.closest_bounds

    def noted(completions, partial, slot):
        found.append(True)
        return of_options(completions, partial, slot)

    def noted_alone(scoring, partial, bounds):
        found.append(False)
        return closest_bounds(scoring, partial, bounds)

    monkeypatch.setattr(Completions, "of_options", noted)
    monkeypatch.setattr(Scoring, "closest_bounds", noted_alone)
    return found


def first_of(host, groups, terms, *, limit, isolated=False, forbidden=False):
    """The answer for groups that each prefer another device, or each may not have another one."""
    wanted = [
        RequestGroup(
            f"_{number}",
            {DEVICE: 1},
            ProviderConditions(forbidden=frozenset({OWN[number]} if forbidden else ())),
        )
        for number in range(groups)
    ]
    suffixes = [group.suffix for group in wanted]
    preferences = [
        Preference(suffix, OWN[5 * number % DEVICES]) for number, suffix in enumerate(suffixes)
    ]
    is_preferred = any(name is PREFERRED for name, _ in terms)
    request = CandidateRequest(
        tuple(wanted),
        limit=limit,
        isolated=frozenset(suffixes) if isolated else frozenset(),
        order=Order(
            tuple(Term(name, (), weight) for name, weight in terms),
            tuple(preferences) if is_preferred else (),
        ),
    )
    return answer_of(host, request)


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 10])
def test_whatever_each_prefers(host, judged, order, limit, isolated):
    first_of(host, 12, ORDERS[order], limit=limit, isolated=isolated)
    assert len(judged) < 12 * (8 + 2 * limit)


@pytest.mark.parametrize("order", ["pack", "pack and preferred"])
@pytest.mark.parametrize("limit", [1, 10])
def test_whatever_each_may_not_have(host, judged, order, limit):
    first_of(host, 10, ORDERS[order], limit=limit, forbidden=True)
    assert len(judged) < 10 * (8 + 2 * limit)


def test_sixteen_that_keep_apart_get_what_they_prefer(host, judged):
    answer = first_of(host, 16, ORDERS["spread and preferred"], limit=10, isolated=True)
    first, *_ = answer["allocation_requests"]
    given = [first["mappings"][f"_{number}"] for number in range(16)]
    assert given == [[provider_uuid(2 + 5 * number % DEVICES)] for number in range(16)]
    assert len(judged) < 16 * 28
