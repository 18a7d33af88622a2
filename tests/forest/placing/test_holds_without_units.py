# SPDX-License-Identifier: Apache-2.0
"""Holds may have amounts that units forbid to other consumers (contract page 98, section 4)."""

from tests.forest.building import body_of, forest_of, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.model.claim import HoldTerms
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest
from treeclaim.model.extension.planning import Mix, MixRequest
from treeclaim.model.provider import Inventory
from treeclaim.model.request import CandidateRequest, Order, RequestGroup, Term, TermName


def amount_of(units, order=None):
    return CandidateRequest((RequestGroup("", {"VCPU": units}),), order=order)


def test_placed_hold_leaves_no_counts_without_units_to_searches():
    """Only the second host admits six units, so the mix loses nothing if the first host is used."""
    mix = Mix("flavors", {"large": MixRequest(amount_of(6), 1)})
    order = Order((Term(TermName.KEEP, ("flavors", "VCPU")),), (), (mix,))
    hosts = [
        record(1, inventories={"VCPU": Inventory(12, max_unit=3)}),
        record(2, inventories={"VCPU": Inventory(12)}),
    ]
    search = amount_of(3, order)
    expected = body_of(forest_of(hosts), search)
    forest = forest_of(hosts)
    consumer = provider_uuid(99)
    request = PlacingRequest((amount_of(5, order),), (consumer,), "p", "u", "t", hold=HoldTerms())
    attempt = ConsumerPlacer(forest, PlacingCall((request,), ()), {}, Budget()).place_all()
    assert set(attempt.placed) == {consumer}
    assert body_of(forest, search) == expected
