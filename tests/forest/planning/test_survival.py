# SPDX-License-Identifier: Apache-2.0
"""Verdicts on failures are right after any time limit, and proofs are true."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from tests.forest.building import CLASSES, EndingBudget, forest_of, news, provider_uuid, record
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.survival import check_survival
from treeclaim.model.extension.order import Order, Term, TermName
from treeclaim.model.extension.planning import Failures
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import CandidateRequest, RequestGroup

POOL_AGGREGATE = provider_uuid(900)


def request(order=None, **amounts):
    return CandidateRequest((RequestGroup("", amounts),), order=order)


def gone(records):
    """The change that removes some providers."""
    removed = [each.id for each in records]
    return news(removed=removed)


class World:
    """A random small cloud, filled by candidates that the search has found."""

    def __init__(self, seed):
        dice = random.Random(seed)
        shape = dice.choice(["plain", "cells", "pool"])
        self.records = []
        for tree in range(dice.randint(2, 4)):
            number = 10 * tree + 10
            total_amounts = {"VCPU": dice.randint(2, 6), "MEMORY_MB": dice.randint(2, 6)}
            if shape == "cells":
                self.records.append(record(number, aggregates=(POOL_AGGREGATE,)))
                self.records += [
                    record(
                        number + cell,
                        number,
                        number,
                        {"VCPU": dice.randint(1, 4), "MEMORY_MB": 4},
                    )
                    for cell in (1, 2)
                ]
            else:
                self.records.append(
                    record(number, None, None, total_amounts, (), (POOL_AGGREGATE,))
                )
        if shape == "pool":
            pool = {"DISK_GB": dice.randint(4, 9)}
            self.records.append(record(1, None, None, pool, (SHARING_TRAIT,), (POOL_AGGREGATE,)))
        order = dice.choice([None, Order((Term(TermName.SPREAD),)), Order((Term(TermName.PACK),))])
        self.consumers = {}
        scratch = Scratch(forest_of(self.records))
        for number in range(dice.randint(2, 6)):
            amounts = {"VCPU": dice.randint(1, 3), "MEMORY_MB": dice.randint(1, 3)}
            if shape == "pool" and dice.random() < 0.6:
                amounts["DISK_GB"] = dice.randint(1, 3)
            answer = request(order, **amounts)
            result = list(Query(scratch, answer, UNBOUNDED).candidates())
            if not result:
                continue
            candidate = dice.choice(result)
            scratch.take(candidate.allocations)
            name = provider_uuid(1000 + number)
            held = candidate.body(scratch.forest).allocations
            self.consumers[name] = PlannedConsumer(name, "p", None, 1, held, (answer,), (0,))

    def forest(self):
        used = Counter()
        for consumer in self.consumers.values():
            for at, amounts in consumer.allocations.items():
                used.update({(at, name): amount for name, amount in amounts.items()})
        return forest_of(
            [
                replace(
                    each,
                    inventories=tuple(
                        replace(stock, used=used[each.uuid, CLASSES[stock.class_id]])
                        for stock in each.inventories
                    ),
                )
                for each in self.records
            ]
        )

    def all_can_be_placed(self, root):
        """Whether the consumers of a tree find places in some order and by some candidates."""
        tree = [each for each in self.records if provider_uuid(each.root_id) == root]
        inside = {each.uuid for each in tree}
        moved = [
            consumer
            for consumer in self.consumers.values()
            if inside & consumer.allocations.keys()
        ]
        forest = self.forest()
        forest.apply(gone(tree))
        scratch = Scratch(forest)
        for moved_consumer in moved:
            scratch.give_back(
                (row, name, amount)
                for at, amounts in moved_consumer.allocations.items()
                for row in [forest.row_of(at)]
                if row is not None
                for name, amount in amounts.items()
            )

        def fit(remaining):
            if not remaining:
                return True
            query = Query(scratch, remaining[0].requests[0], UNBOUNDED)
            for moved_consumer in list(query.candidates()):
                scratch.take(moved_consumer.allocations)
                if fit(remaining[1:]):
                    return True
                scratch.give_back(moved_consumer.allocations)
            return False

        return fit(moved)


SEEDS = range(60)


@pytest.mark.slow
def test_survival_verdicts_match_exhaustive_placement():
    surviving = failing = proofs = 0
    for seed in SEEDS:
        world = World(seed)
        result = check_survival(
            world.forest(), world.consumers, Failures(shows_all=True), UNBOUNDED
        )
        assert result["complete"]
        for domain in result["domains"]:
            if domain["survives"]:
                surviving += 1
                assert domain["proven"]
                assert world.all_can_be_placed(domain["uuid"])
            else:
                failing += 1
                proofs += domain["proven"]
                if domain["proven"]:
                    assert not world.all_can_be_placed(domain["uuid"])
    assert surviving > 20
    assert failing > 20
    assert proofs > failing // 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3, 5])
def test_survival_check_returns_partial_results_on_timeout(seed):
    world = World(seed)
    failures = Failures(shows_all=True, explain=True)
    whole = check_survival(world.forest(), world.consumers, failures, UNBOUNDED)
    verdicts = {domain["uuid"]: domain for domain in whole["domains"]}
    seen = set()
    for times in range(0, 4000, 7):
        budget = EndingBudget(times, everywhere=True)
        result = check_survival(world.forest(), world.consumers, failures, budget)
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
    forest.apply(gone(records[-3:]))
    held = {provider_uuid(1): {"VCPU": 1}}
    name = provider_uuid(1000)
    consumers = {name: PlannedConsumer(name, "p", None, 1, held, (request(VCPU=1),), (0,))}
    result = check_survival(forest, consumers, Failures(shows_all=True), UNBOUNDED)
    assert (result["survive"], result["of"], result["complete"]) == (5, 5, True)
