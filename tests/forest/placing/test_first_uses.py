# SPDX-License-Identifier: Apache-2.0
"""A condition that begins with the first use hides free amounts, but no capacity (contract page 102, section 3.2)."""

from tests.forest.building import forest_of, record, with_links
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.explanation import explain_attempt
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest
from treeclaim.model.provider import Condition, Effect
from treeclaim.model.request import CandidateRequest, Order, RequestGroup, Term, TermName

CLEANING = Condition("CLEANING", Effect.NO_NEW, on_use=True, began=False)


def wants(name, consumer, resources, order=None):
    request = CandidateRequest((RequestGroup("", resources),), order=order)
    return PlacingRequest((request,), (consumer,), "p", "u", name)


def placed(records, *requests):
    budget = Budget()
    placer = ConsumerPlacer(
        forest_of(records), PlacingCall(requests, (), partial=True), {}, budget
    )
    attempt = placer.place_all()
    return attempt, explain_attempt(placer, attempt, budget)


def test_second_consumer_would_fit_if_nothing_were_allocated():
    host = with_links(record(1, inventories={"VCPU": 4}), conditions=(CLEANING,))
    first, second = wants("INSTANCE", "a", {"VCPU": 2}), wants("INSTANCE", "b", {"VCPU": 3})
    attempt, explanation = placed([host], first, second)
    assert attempt.unplaced == ["b"]
    assert explanation["fits_when_empty"] is True


def test_barred_device_counts_with_its_capacity_in_scores():
    """A host with a just claimed device is fuller than an equal host, by 2 of 20 units."""
    records = [record(1, inventories={"VCPU": 10}), record(3, inventories={"VCPU": (20, 3)})]
    device = record(2, 1, 1, {"VCPU": 10, "CUSTOM_DEVICE": 1})
    records.insert(1, with_links(device, conditions=(CLEANING,)))
    first = wants("INSTANCE", "a", {"CUSTOM_DEVICE": 1, "VCPU": 2})
    fullest = wants("INSTANCE", "b", {"VCPU": 1}, Order((Term(TermName.PACK),)))
    attempt, _ = placed(records, first, fullest)
    (root,) = attempt.placed["b"].roots
    assert root[1] == "provider 3"
