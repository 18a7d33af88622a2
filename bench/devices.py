# SPDX-License-Identifier: Apache-2.0
"""What devices cost that can be had in more ways than one (contract page 102, section 2).

`python -m bench.devices [--hosts 1000]`: hosts with eight cards in all MIG partitions, as the guide
models them; what they take in memory, and how long questions about them take. The search is asked in this
process.
"""

import argparse
import resource
import time
from collections.abc import Callable, Mapping

import numpy as np
import orjson

from treeclaim.api.resources.candidates.operations import request_of
from treeclaim.client.topology.mig import CARDS
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explained
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor, UsageChange
from treeclaim.model.inventory import MAXIMUM_INTEGER
from treeclaim.model.microversions import NEWEST
from treeclaim.model.parts import SHOWN_LINKS
from treeclaim.model.request import CandidateRequest, SearchOptions
from treeclaim.model.whole import (
    NO_PARENT,
    ConsumptionColumns,
    InventoryColumns,
    Links,
    Numbers,
    WholeInventory,
)

CARD = CARDS["a100-80gb"]
CARDS_A_HOST = 8
PROFILES = ("1G_10GB", "1G_20GB", "2G_20GB", "3G_40GB", "4G_40GB")
WHOLE = "CUSTOM_MIG_7G_80GB"


def asked(query: str) -> CandidateRequest:
    """Return a request as the service reads it."""
    return request_of(query, NEWEST, 512)


class Cloud:
    """Hosts with cards, of which each has all its partitions.

    Attributes:
        forest: All of them.
        begun: Seconds until it could be searched.
    """

    def __init__(self, hosts: int) -> None:
        """Lay out so many hosts, each like the first one."""
        self.hosts = hosts
        self._claimed = 1
        self._classes: list[str] = []
        self._parents = [NO_PARENT]
        self._names = ["host"]
        self._stock: list[tuple[int, int, int]] = []
        self._consumed: list[tuple[int, int, int, int, int]] = []
        self._template()
        began = time.monotonic()
        self.forest = Forest()
        self.forest.apply(
            Changes(
                Cursor({}, None, frozenset()),
                complete=True,
                records=[],
                removed=[],
                catalogue=Catalogue.of(
                    [],
                    [
                        CatalogueEntry(number, name, 0.0)
                        for number, name in enumerate(self._classes)
                    ],
                ),
                whole=self._whole(),
            )
        )
        self.forest.prepare()
        self.begun = time.monotonic() - began

    @property
    def width(self) -> int:
        """Return the number of providers of a host."""
        return len(self._parents)

    def _class(self, name: str) -> int:
        if name not in self._classes:
            self._classes.append(name)
        return self._classes.index(name)

    def _template(self) -> None:
        self._stock.append((0, self._class("VCPU"), 64))
        for number in range(CARDS_A_HOST):
            card = self._add(0, f"gpu{number}")
            for kind, stock in CARD.slices().items():
                self._stock.append((card, self._class(kind), stock["total"]))
            for name, inventories in CARD.positions():
                position = self._add(card, f"gpu{number}_{name}")
                for kind, stock in inventories.items():
                    self._stock.append((position, self._class(kind), stock["total"]))
                    for use in stock["consumes"]:
                        entry = self._class(use["resource_class"]), use["amount"]
                        self._consumed.append((position, self._class(kind), card, *entry))

    def _add(self, parent: int, name: str) -> int:
        self._parents.append(parent)
        self._names.append(name)
        return len(self._parents) - 1

    def _whole(self) -> WholeInventory:
        count, hosts = self.hosts * self.width, np.arange(self.hosts) * self.width + 1

        def ids(of_host: Numbers) -> Numbers:
            found: Numbers = (hosts[:, None] + of_host).ravel()
            return found

        def each(of_host: Numbers) -> Numbers:
            return np.tile(of_host, self.hosts)

        parents = np.array(self._parents)
        stock, consumed = np.array(self._stock).T, np.array(self._consumed).T
        inventories = len(stock[0]) * self.hosts
        ones, zeros = np.ones(inventories, np.int64), np.zeros(inventories, np.int64)
        none = np.empty(0, dtype=np.int64)
        return WholeInventory(
            id=np.arange(1, count + 1),
            uuid=np.array([f"{n:08x}-0000-4000-8000-000000000000" for n in range(count)], "S36"),
            name=[f"cmp{host}_{name}" for host in range(self.hosts) for name in self._names],
            generation=np.zeros(count, np.int64),
            parent_id=np.where(each(parents) == NO_PARENT, NO_PARENT, ids(parents)),
            modified_at=np.zeros(count),
            inventories=InventoryColumns(
                provider_id=ids(stock[0]),
                class_id=each(stock[1]),
                total=each(stock[2]),
                reserved=zeros,
                min_unit=ones,
                max_unit=ones * MAXIMUM_INTEGER,
                step_size=ones,
                allocation_ratio=np.ones(inventories),
                used=zeros,
                modified_at=np.zeros(inventories),
            ),
            links={part.name: Links(none, none) for part in SHOWN_LINKS},
            consumption=ConsumptionColumns(
                ids(consumed[0]),
                each(consumed[1]),
                ids(consumed[2]),
                each(consumed[3]),
                each(consumed[4]),
            ),
        )

    def take(self, name: str, leave: int) -> None:
        """Let all of a class be allocated but for so many units, those of the last providers."""
        number = self._class(name)
        columns = self.forest.classes[number]
        ids = self.forest.id.values[columns.row.values[columns.free.values > 0]]
        self._use(
            {
                int(one): UsageChange({number: 1}, 0, 0, 0.0)
                for one in ids[: len(ids) - leave].tolist()
            }
        )

    def claim(self) -> None:
        """Let something of the first host be claimed, or given back."""
        self._claimed = -self._claimed
        (partition, *_) = [own for own, kind, _ in self._stock if kind == self._class(WHOLE)]
        change = UsageChange({self._class(WHOLE): self._claimed}, 0, 0, 0.0)
        self._use({partition + 1: change})

    def _use(self, usage: Mapping[int, UsageChange]) -> None:
        cursor = Cursor({}, None, frozenset())
        self.forest.apply(
            Changes(cursor, complete=False, records=[], removed=[], catalogue=None, usage=usage)
        )


def fastest(of: Callable[[], object], times: int = 5) -> float:
    """Return the milliseconds of a processor that the fastest of some calls takes."""
    found = []
    for _ in range(times):
        began = time.process_time()
        of()
        found.append((time.process_time() - began) * 1000)
    return min(found)


def main() -> None:
    """Measure what the options say, and print it."""
    parser = argparse.ArgumentParser(prog="python -m bench.devices", description=__doc__)
    parser.add_argument("--hosts", type=int, default=1_000)
    hosts = parser.parse_args().hosts
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cloud = Cloud(hosts)
    forest = cloud.forest
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        f"{hosts} hosts, {len(forest)} providers: {peak / len(forest):.2f} kB each at most while they"
        f" are laid out, in {cloud.begun:.1f} s"
    )

    def candidates(query: str) -> Callable[[], object]:
        return lambda: b"".join(search(forest, asked(query), SearchOptions()).pieces())

    def after_claim(query: str) -> Callable[[], object]:
        def claimed_and_asked() -> object:
            cloud.claim()
            return candidates(query)()

        return claimed_and_asked

    def explain(query: str) -> Callable[[], object]:
        return lambda: orjson.dumps(explained(forest, asked(query), Focus(), Budget()))

    one = f"resources_A={WHOLE}:1"
    five = "&".join(f"resources_{n}=CUSTOM_MIG_{name}:1" for n, name in enumerate(PROFILES))
    five += "&group_policy=none"
    few = "&limit=10"
    _measure("a whole card, limit=10", candidates(one + few))
    _measure("five profiles, limit=10", candidates(five + few))
    cloud.take(WHOLE, 1)
    _measure("the last card, limit=10", candidates(one + few))
    _measure("after a claim", after_claim(one + few))
    cloud.take(WHOLE, 0)
    _measure("no card, explained", explain(one))
    _measure("no room for five profiles, explained", explain(five))


def _measure(name: str, of: Callable[[], object]) -> None:
    print(f"{name}: {fastest(of, 1):.1f} ms at first, then {fastest(of):.2f}", flush=True)


if __name__ == "__main__":
    main()
