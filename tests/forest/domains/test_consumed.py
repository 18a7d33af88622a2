# SPDX-License-Identifier: Apache-2.0
"""The room that consumption leaves is computed true after every write."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.forest.building import forest_of, news, record
from treeclaim.forest.domains.consumed import NO_CODE, most_by_consumed, uses_of_options
from treeclaim.forest.domains.relation import relations_of
from treeclaim.model.changes import UsageChange
from treeclaim.model.provider import Consumed
from treeclaim.model.request import RequestGroup

VCPU, SLICES, FRAMES, DEVICE = range(4)
DEVICES = 6
HOSTS = 20


def hosts(count, used=0):
    """Roots with slices and frames, of which each of their devices consumes as much as its number says."""
    records = []
    for host in range(count):
        root = host * (DEVICES + 1) + 1
        records.append(record(root, inventories={"MEMORY_MB": 40, "DISK_GB": 30}))
        for number in range(1, DEVICES + 1):
            child = record(root + number, root, root, {"CUSTOM_DEVICE": (4, used)})
            consumes = (Consumed(root, SLICES, number), Consumed(root, FRAMES, 3))
            (stock,) = child.inventories
            records.append(replace(child, inventories=(replace(stock, consumes=consumes),)))
    return records


def claimed(provider_id, amount, class_id=DEVICE):
    """Changes that say: so much more of a provider is allocated."""
    usage = {provider_id: UsageChange({class_id: amount}, 0, 0, 0.0)}
    return news(usage=usage)


def asked(suffix="_A", amount=1):
    """A request for a device."""
    return RequestGroup(suffix, {"CUSTOM_DEVICE": amount})


def most(forest):
    """The room of each device, by the inventories that it consumes."""
    (relation,) = relations_of(forest, asked())
    return most_by_consumed(forest, relation.pairs, "CUSTOM_DEVICE").tolist()


@pytest.mark.slow
def test_consumption_follows_claims():
    forest = forest_of(hosts(HOSTS))
    draw = random.Random(3)
    for _ in range(30):
        host = draw.randrange(HOSTS) * (DEVICES + 1) + 1
        number, class_id = draw.choice([(0, SLICES), *((n, DEVICE) for n in range(1, 7))])
        forest.apply(claimed(host + number, draw.choice([-1, 1]), class_id))
        assert most(forest) == most(forest_of(forest.records()))


def test_tree_change_recomputes_consumption():
    forest = forest_of(hosts(3))
    most(forest)
    records = hosts(3)
    gone = records.pop()
    forest.apply(news(removed=[gone.id]))
    forest.apply(claimed(1 + DEVICES + 1, 7, SLICES))
    assert most(forest) == most(forest_of(forest.records()))
    assert len(most(forest)) == 3 * DEVICES - 1


def test_consumption_of_several_classes_adds_up():
    """A provider that consumes of its own slices, which are asked for too."""
    own = record(1, inventories={"VCPU": 8, "MEMORY_MB": 10, "CUSTOM_DEVICE": 4})
    records = [
        replace(
            own,
            inventories=tuple(
                replace(stock, consumes=(Consumed(1, SLICES, 2),))
                if stock.class_id in (VCPU, DEVICE)
                else stock
                for stock in own.inventories
            ),
        )
    ]
    forest = forest_of(records)
    amounts = {"VCPU": 2, "MEMORY_MB": 2, "CUSTOM_DEVICE": 2}
    (relation,) = relations_of(forest, RequestGroup("_A", amounts))
    assert relation.providers.tolist() == [0]
    uses = uses_of_options(forest, relation.pairs, amounts, np.arange(1))
    assert uses.amounts[uses.codes != NO_CODE].tolist() == [10]
    (relation,) = relations_of(forest, RequestGroup("_A", {**amounts, "MEMORY_MB": 3}))
    assert not relation.providers.tolist()
