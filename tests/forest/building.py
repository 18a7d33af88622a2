# SPDX-License-Identifier: Apache-2.0
"""Small Forests for tests, built from records."""

import json
import uuid
from contextlib import contextmanager
from dataclasses import replace
from time import process_time

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.provider import Inventory, InventoryRecord, ProviderRecord
from treeclaim.model.request import BodyForm, SearchOptions

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_DEVICE")
TRAITS = (SHARING_TRAIT, "HW_NUMA_ROOT", "CUSTOM_FAST", "CUSTOM_SLOW")
CATALOGUE = Catalogue.of(
    [CatalogueEntry(number, name, 0.0) for number, name in enumerate(TRAITS, 1)],
    [CatalogueEntry(number, name, 0.0) for number, name in enumerate(CLASSES)],
)


BEGINNING = Cursor((), ())
"""The cursor of a reader before its first read."""


def provider_uuid(number):
    return str(uuid.UUID(int=number))


def record(number, parent=None, root=None, inventories=None, traits=(), aggregates=(), **columns):
    """A provider record; inventories are {class name: Inventory or total} or with (.., used)."""
    inventory_records = []
    for name, entry in (inventories or {}).items():
        amount, used = entry if isinstance(entry, tuple) else (entry, 0)
        inventory = amount if isinstance(amount, Inventory) else Inventory(total=amount)
        inventory_records.append(InventoryRecord(CLASSES.index(name), inventory, used, 0.0))
    values = {
        "id": number,
        "uuid": provider_uuid(number),
        "name": f"provider {number}",
        "generation": 0,
        "parent_id": parent,
        "root_id": root if root is not None else number,
        "modified_at": 0.0,
        "inventories": tuple(sorted(inventory_records, key=lambda inventory: inventory.class_id)),
        "links": {
            "traits": tuple(sorted(TRAITS.index(name) + 1 for name in traits)),
            "aggregates": tuple(sorted(aggregates)),
            "conditions": (),
        },
    }
    return ProviderRecord(**(values | columns))


def with_links(provider, **links):
    """A copy of a record with other traits (ids) or aggregates."""
    return replace(provider, links={**provider.links, **links})


def complete(records):
    """Return changes that replace all providers."""
    return Changes(
        cursor=BEGINNING, complete=True, records=records, removed=[], catalogue=CATALOGUE
    )


def make_changes(*records, removed=(), catalogue=None, usage=None):
    """Changes of these providers alone."""
    return Changes(BEGINNING, False, records, list(removed), catalogue, usage or {})


def forest_of(records):
    """A Forest of these providers."""
    forest = Forest()
    forest.apply(complete(records))
    return forest


def wide_trees(trees, children, units=1, *, first=1):
    """Return trees with VCPU at the root and equal children."""
    records = []
    for _ in range(trees):
        root = first + len(records)
        records.append(record(root, inventories={"VCPU": 64}))
        records += [
            record(number, root, root, {"CUSTOM_DEVICE": units})
            for number in range(root + 1, root + 1 + children)
        ]
    return records


def body_of(forest, request, options=None, form=None):
    """The body of the answer to a request, in bytes."""
    answer = search(forest, request, options or SearchOptions(), form or BodyForm())
    return b"".join(answer.pieces())


def answer_of(forest, request, options=None, form=None):
    """The answer to a request, read from its body."""
    return json.loads(body_of(forest, request, options, form))


class EndingBudget(Budget):
    """A budget that ends after a number of checks.

    Attributes:
        checks: Number of checks: of all, or only those within `ending`, where partial results are still useful.
    """

    def __init__(self, most=None, *, everywhere=False):
        super().__init__()
        self.checks = 0
        self._most = most
        self._depth = int(everywhere)

    def check(self):
        self.checks += self._depth > 0
        if self._depth and self._most is not None and self.checks > self._most:
            raise SearchGivenUpError(0)

    @contextmanager
    def ending(self, at):
        self._depth += at is not None
        try:
            with super().ending(at):
                yield
        finally:
            self._depth -= at is not None


class MeasuringBudget(Budget):
    """A budget that measures the most bytes held at a time, and the longest work between two checks.

    Attributes:
        most_held: In bytes.
        longest: In seconds of processor time.
    """

    def __init__(self, *limits):
        super().__init__(*limits)
        self.most_held, self.longest = 0, 0.0
        self._last = process_time()

    def hold(self, nbytes):
        super().hold(nbytes)
        self.most_held = max(self.most_held, self._held_bytes)

    def check(self):
        self.note_check()
        super().check()
        self._last = process_time()

    def note_check(self):
        """Measure the time since the last check."""
        self.longest = max(self.longest, process_time() - self._last)


def distinct(answer):
    """The candidates as comparable values."""
    return {
        json.dumps(allocation_request, sort_keys=True)
        for allocation_request in answer["allocation_requests"]
    }
