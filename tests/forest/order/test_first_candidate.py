# SPDX-License-Identifier: Apache-2.0
"""A search for one candidate finds the first of the whole list (contract page 98, section 2.2, rule 2)."""

import random
from dataclasses import replace

import pytest

from tests.forest.building import answer_of, forest_of, record
from treeclaim.model.extension.order import Order, Preference, Term, TermName
from treeclaim.model.request import CandidateRequest, RequestGroup

DEVICE, TRAIT = "CUSTOM_DEVICE", "CUSTOM_FAST"
ORDERS = [
    Order((Term(TermName.PACK),)),
    Order((Term(TermName.PACK_PROVIDERS),)),
    Order((Term(TermName.SPREAD_PROVIDERS), Term(TermName.NEAR, ("_0", "_1")))),
    Order((Term(TermName.PREFERRED),), (Preference("_3", TRAIT, True, 1),)),
]


def random_cloud(choice, units):
    """Hosts of two cards with devices, of which several have the same use and traits."""
    records, root = [], 1
    for _ in range(3):
        records.append(record(root, inventories={"VCPU": 64}))
        records += [record(card, root, root, {}) for card in (root + 1, root + 2)]
        for at in range(5):
            card, used = root + 1 + choice.randrange(2), choice.choice((0, 0, 1))
            traits = choice.choice(((), (), (TRAIT,)))
            records.append(record(root + 3 + at, card, root, {DEVICE: (units, used)}, traits))
        root += 8
    return forest_of(records)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.terms[0].name)
@pytest.mark.parametrize("isolated", [0, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_first_candidate_is_that_of_the_whole_list(order, isolated, seed):
    choice = random.Random(seed)
    suffixes = [f"_{number}" for number in range(4)]
    request = CandidateRequest(
        tuple(RequestGroup(suffix, {DEVICE: choice.choice((1, 1, 2))}) for suffix in suffixes),
        limit=10_000,
        isolated=frozenset(suffixes[:isolated]),
        order=order,
    )
    forest = random_cloud(choice, units=choice.choice((2, 4)))
    whole = answer_of(forest, request)
    first = answer_of(forest, replace(request, limit=1))
    assert first["allocation_requests"] == whole["allocation_requests"][:1]
    assert first["scores"] == whole["scores"][:1]
