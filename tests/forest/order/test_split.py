# SPDX-License-Identifier: Apache-2.0
"""Candidates with divided amounts are ordered by their scores."""

import random

import pytest

from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.model.extension.order import Order, Preference, Term, TermName
from treeclaim.model.request import CandidateRequest, RequestGroup, SplitPolicy

DEVICES = 16


def divided(forest, terms, amount, limit, preferences=(), more=(), policy=SplitPolicy.PACK):
    """The first candidates of a divided amount with their scores, as they are answered."""
    groups = (RequestGroup("", {"CUSTOM_DEVICE": amount, "DISK_GB": 1}), *more)
    request = CandidateRequest(
        groups,
        can_split=frozenset({"CUSTOM_DEVICE"}),
        limit=limit,
        order=Order(terms, preferences),
        split_policy=policy,
    )
    return answer_of(forest, request)


@pytest.mark.parametrize("name", [TermName.MOST, TermName.LEAST])
def test_attribute_of_a_group_counts_beside_a_divided_amount(name):
    records = [record(1, inventories={"DISK_GB": 100})]
    records += [
        record(2 + at, 1, 1, {"CUSTOM_DEVICE": 2}, attributes={"gib": at}) for at in range(DEVICES)
    ]
    records += [record(98 + at, attributes={"gib": gib}) for at, gib in enumerate((-10, 30))]
    beside = [RequestGroup("_A", {"CUSTOM_DEVICE": 1})]
    answer = divided(forest_of(records), (Term(name, ("gib", "_A")),), 12, 5, more=beside)
    best = DEVICES - 1 if name is TermName.MOST else 0
    for candidate in answer["allocation_requests"]:
        assert candidate["mappings"]["_A"] == [provider_uuid(2 + best)]
    assert answer["scores"] == [0.625 if name is TermName.MOST else 0.75] * 5


@pytest.mark.parametrize("seed", range(60))
def test_first_divisions_match_the_full_ordered_list(seed):
    chance = random.Random(seed)
    totals = [chance.randint(1, 7) for _ in range(chance.randint(4, 9))]
    amounts = [(total, chance.randint(0, total - 1)) for total in totals]
    terms = tuple(
        Term(name, (), chance.choice([1, 1, 3]))
        for name in chance.sample(
            [
                *(TermName.SPREAD_PROVIDERS, TermName.PACK_PROVIDERS, TermName.SPREAD),
                *(TermName.PACK, TermName.PREFERRED),
            ],
            chance.choice([1, 1, 2, 3]),
        )
    )
    preferences = (Preference("", "CUSTOM_FAST"),)
    more = [RequestGroup("_A", {"CUSTOM_DEVICE": 1})][: chance.random() < 0.4]
    records = [record(1, inventories={"DISK_GB": 100})]
    for at, has in enumerate(amounts):
        traits = ["CUSTOM_FAST"] if chance.random() < 0.3 else []
        records.append(record(2 + at, 1, 1, {"CUSTOM_DEVICE": has}, traits=traits))
    forest = forest_of(records)
    free = sum(total - used for total, used in amounts)
    amount = chance.randint(1, max(1, free * 2 // 3))
    policy = chance.choice(list(SplitPolicy))
    whole = divided(forest, terms, amount, 1000, preferences, more, policy)
    limit = chance.choice([1, 2, 5, 20])
    result = divided(forest, terms, amount, limit, preferences, more, policy)
    for name in ("allocation_requests", "scores"):
        assert result[name] == whole[name][:limit]
