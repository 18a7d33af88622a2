# SPDX-License-Identifier: Apache-2.0
"""Verdicts on failures are right after any time limit, and proofs are true."""

from dataclasses import replace

import pytest

from tests.forest.building import EndingBudget, forest_of, make_changes, provider_uuid, record
from tests.properties import test_moves_are_the_best_of_all_plans as plans
from tests.properties.forest_adapter import forest_of as forest_of_world
from tests.reference.candidates import Reference
from tests.reference.world import World, uuid_of
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.survival import check_survival
from treeclaim.model.extension.planning import Failures
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import CandidateRequest, Order, RequestGroup, Term, TermName


class Cloud:
    """A random small world with consumers that can be placed anew."""

    def __init__(self, seed):
        question = plans.question_of(seed)
        self.world = question.world
        self.consumers = [
            replace(consumer, drawn_amounts={})
            for consumer in question.consumers
            if consumer.requests
        ]

    def check(self, failures, budget=UNBOUNDED):
        """Return the verdicts of the planner."""
        forest = forest_of_world(plans.occupied(self.world, self.consumers))
        planned = map(plans.planned, self.consumers)
        return check_survival(forest, {each.uuid: each for each in planned}, failures, budget)

    def all_can_be_placed(self, root):
        """Return whether the consumers of a tree find places in some order and by some candidates."""
        reference = Reference(self.world)
        lost = {name for name in reference.P if uuid_of(reference.root(name)) == root}
        remaining = World(tuple(p for p in self.world.providers if p.name not in lost))
        moved = [each for each in self.consumers if any(p in lost for p, _ in each.held_amounts)]
        others = [each for each in self.consumers if each not in moved]

        def fit(waiting, placed):
            if not waiting:
                return True
            reference = Reference(plans.occupied(remaining, placed))
            return any(
                fit(
                    waiting[1:],
                    [*placed, replace(waiting[0], held_amounts={(p, c): n for p, c, n in alloc})],
                )
                for request in waiting[0].requests
                for alloc, _ in reference.candidates(request)
            )

        return fit(moved, others)


SEEDS = range(60)


@pytest.mark.slow
def test_survival_verdicts_match_exhaustive_placement():
    surviving = failing = proofs = 0
    for seed in SEEDS:
        cloud = Cloud(seed)
        result = cloud.check(Failures(shows_all=True))
        assert result["complete"]
        for domain in result["domains"]:
            if domain["survives"]:
                surviving += 1
                assert domain["proven"]
                assert cloud.all_can_be_placed(domain["uuid"])
            else:
                failing += 1
                proofs += domain["proven"]
                if domain["proven"]:
                    assert not cloud.all_can_be_placed(domain["uuid"])
    assert surviving > 20
    assert failing > 20
    assert proofs > failing // 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 7, 8])
def test_survival_check_returns_partial_results_on_timeout(seed):
    cloud = Cloud(seed)
    failures = Failures(shows_all=True, explain=True)
    whole = cloud.check(failures)
    verdicts = {domain["uuid"]: domain for domain in whole["domains"]}
    seen = set()
    for times in range(0, 4000, 5):
        result = cloud.check(failures, EndingBudget(times, everywhere=True))
        assert result["of"] == whole["of"]
        seen.add(len(result["domains"]))
        for domain_entry in result["domains"]:
            domain_entry.pop("explanation", None)
            expected = {
                k: v for k, v in verdicts[domain_entry["uuid"]].items() if k != "explanation"
            }
            # A proof may have been cut off.
            assert domain_entry in (expected, expected | {"proven": False})
        if result["complete"]:
            break
    assert result["complete"]
    assert {0, whole["of"]} <= seen


@pytest.mark.parametrize("shares", [False, True])
def test_deleted_trees_are_not_counted(shares):
    """Their rows are dead, and hold numbers of trees that there are no more."""
    records = [record(number, inventories={"VCPU": 4}) for number in range(1, 8)]
    records.append(record(8, None, None, {"VCPU": 4}, (SHARING_TRAIT,) if shares else ()))
    forest = forest_of(records)
    assert forest.order.tree.max() == 7
    forest.apply(make_changes(removed=[each.id for each in records[-3:]]))
    held = {provider_uuid(1): {"VCPU": 1}}
    name = provider_uuid(1000)
    request = CandidateRequest((RequestGroup("", {"VCPU": 1}),))
    consumers = {name: PlannedConsumer(name, "p", None, 1, held, (request,), (0,))}
    result = check_survival(forest, consumers, Failures(shows_all=True), UNBOUNDED)
    assert (result["survive"], result["of"], result["complete"]) == (5, 5, True)


def test_order_by_an_attribute_does_not_count_the_failed_domain():
    """Without the fastest host, the second fastest outweighs the fuller one, and the last consumer finds no room."""
    hosts = [
        record(1, inventories={"VCPU": (9, 7), "MEMORY_MB": (60, 50)}, attributes={"speed": 999}),
        record(2, inventories={"VCPU": 4, "MEMORY_MB": 60}, attributes={"speed": 10}),
        record(3, inventories={"VCPU": (9, 6), "MEMORY_MB": 60}, attributes={"speed": 0}),
    ]
    order = Order((Term(TermName.MOST, ("speed", "_G")), Term(TermName.PACK, ("VCPU",))))
    first, last = {"VCPU": 3, "MEMORY_MB": 50}, {"VCPU": 4}
    consumers = {
        name: PlannedConsumer(
            name,
            "p",
            None,
            1,
            {provider_uuid(1): amounts},
            (CandidateRequest((RequestGroup("_G", amounts),), order=order),),
            (0,),
        )
        for name, amounts in (("a", first), ("b", last))
    }
    result = check_survival(forest_of(hosts), consumers, Failures(shows_all=True), UNBOUNDED)
    (domain,) = [each for each in result["domains"] if each["uuid"] == provider_uuid(1)]
    assert (domain["unplaced"], domain["first_unplaced"]) == (1, "b")
