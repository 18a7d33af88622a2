# SPDX-License-Identifier: Apache-2.0
"""Consumed amounts count as used after any change of a Forest (contract page 102, section 2)."""

import random
from dataclasses import replace

import pytest

from tests.forest.building import CATALOGUE, forest_of, news, record
from treeclaim.forest.bounds import thresholds
from treeclaim.model.changes import UsageChange
from treeclaim.model.provider import Consumed

SLICES, DEVICE = 1, 3
"""Ids of the classes MEMORY_MB and CUSTOM_DEVICE."""


def host(number, *, used, amounts):
    """A root with slices, and a device for each amount of them that a unit of it consumes."""
    records = [record(number, inventories={"MEMORY_MB": 100, "VCPU": 8})]
    for place, (units, amount) in enumerate(zip(used, amounts, strict=True), 1):
        child = record(number + place, number, number, {"CUSTOM_DEVICE": (4, units)})
        consumes = (Consumed(number, SLICES, amount),) if amount else ()
        (stock,) = child.inventories
        records.append(replace(child, inventories=(replace(stock, consumes=consumes),)))
    return records


def told(forest):
    """All that clients see of the inventories, and what the records are."""
    rows = forest.living_rows.tolist()
    shown = {
        forest.uuid_of(row): [
            (view.resource_class, view.used, view.consumes) for view in forest.inventories(row)
        ]
        for row in rows
    }
    free = {
        (forest.uuid_of(int(columns.row.values[index])), class_id): int(columns.free.values[index])
        for class_id, columns in forest.classes.items()
        for index in columns.living().tolist()
    }
    texts = {forest.uuid_of(row): forest.summary(row) for row in rows}
    return shown, free, forest.records(), texts


def test_consumption_of_a_device_counts_as_used_on_its_host():
    forest = forest_of(host(1, used=[2, 1], amounts=[3, 5]))
    row = forest.row_of_id(1)
    used = {view.resource_class: view.used for view in forest.inventories(row)}
    assert used == {"MEMORY_MB": 11, "VCPU": 0}
    assert forest.record(row).inventories[1].used == 0


class History:
    """Random changes of a cloud, each told to a Forest that knows the cloud as it was."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.records = {
            one.id: one
            for number in (1, 11, 21)
            for one in host(number, used=self.numbers(3), amounts=self.numbers(6))
        }
        self.forest = forest_of(list(self.records.values()))

    def numbers(self, most):
        return [self.draw.randint(0, most) for _ in range(3)]

    def step(self):
        self.draw.choice([self.claim, self.rewrite, self.rename, self.vanish, self.both])()
        assert told(self.forest) == told(forest_of(list(self.records.values())))

    def tell(self, records=(), removed=(), usage=None):
        self.forest.apply(
            news(*records, removed=list(removed), catalogue=CATALOGUE, usage=usage or {})
        )

    def device(self):
        return self.draw.choice([one for one in self.records.values() if one.parent_id])

    def claimed(self):
        """A device of which another amount is allocated, and what tells so."""
        one = self.device()
        (stock,) = one.inventories
        more = self.draw.randint(-stock.used, 3)
        self.records[one.id] = replace(one, inventories=(replace(stock, used=stock.used + more),))
        return one.id, UsageChange({DEVICE: more}, 0, 0, 0.0)

    def claim(self):
        self.tell(usage=dict([self.claimed()]))

    def rewrite(self):
        one = self.device()
        amount = self.draw.randint(0, 6)
        consumes = (Consumed(one.root_id, SLICES, amount),) if amount else ()
        (stock,) = one.inventories
        self.records[one.id] = replace(one, inventories=(replace(stock, consumes=consumes),))
        self.tell([self.records[one.id]])

    def rename(self):
        one = self.draw.choice(list(self.records.values()))
        self.records[one.id] = replace(one, name=f"name {self.draw.random()}")
        self.tell([self.records[one.id]])

    def vanish(self):
        root = self.draw.choice([one.id for one in self.records.values() if not one.parent_id])
        gone = [one for one in self.records if self.records[one].root_id == root]
        new = host(root, used=self.numbers(3), amounts=self.numbers(6))[: self.draw.randint(2, 4)]
        for one in gone:
            del self.records[one]
        self.records |= {one.id: one for one in new}
        self.tell(new, set(gone) - {one.id for one in new})

    def both(self):
        """Claims, and the same providers loaded, in one look at the feed."""
        provider_id, change = self.claimed()
        root = self.records[self.records[provider_id].root_id]
        self.records[root.id] = replace(root, generation=root.generation + 1)
        if self.draw.random() < 0.5:
            self.tell([self.records[root.id]], usage={provider_id: change})
        else:
            self.tell([self.records[root.id], self.records[provider_id]])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("is_small", [False, True])
def test_random_history_equals_a_full_load(seed, is_small, monkeypatch):
    if is_small:
        monkeypatch.setattr(thresholds, "FEWEST_DEAD_ROWS", 0)
        monkeypatch.setattr(thresholds, "ROWS_COPIED_TOGETHER", 1)
    history = History(seed)
    for _ in range(30):
        history.step()
