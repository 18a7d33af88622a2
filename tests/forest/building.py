# SPDX-License-Identifier: Apache-2.0
"""Small Forests for tests, built from records."""

import json
import uuid
from dataclasses import replace

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
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
"""A reader that knows nothing of any stream."""


def provider_uuid(number):
    return str(uuid.UUID(int=number))


def record(number, parent=None, root=None, inventories=None, traits=(), aggregates=(), **columns):
    """A provider record; inventories are {class name: Inventory or total} or with (.., used)."""
    made = []
    for name, given_amount in (inventories or {}).items():
        amount, used = given_amount if isinstance(given_amount, tuple) else (given_amount, 0)
        inventory = amount if isinstance(amount, Inventory) else Inventory(total=amount)
        made.append(InventoryRecord(CLASSES.index(name), inventory, used, 0.0))
    values = {
        "id": number,
        "uuid": provider_uuid(number),
        "name": f"provider {number}",
        "generation": 0,
        "parent_id": parent,
        "root_id": root if root is not None else number,
        "modified_at": 0.0,
        "inventories": tuple(sorted(made, key=lambda entry: entry.class_id)),
        "links": {
            "traits": tuple(sorted(TRAITS.index(name) + 1 for name in traits)),
            "aggregates": tuple(sorted(aggregates)),
            "conditions": (),
        },
    }
    return ProviderRecord(**(values | columns))


def having(provider, **links):
    """A copy of a record with other traits (ids) or aggregates."""
    return replace(provider, links={**provider.links, **links})


def complete(records):
    """Changes that say: these are all providers."""
    return Changes(
        cursor=BEGINNING, complete=True, records=records, removed=[], catalogue=CATALOGUE
    )


def news(*records, removed=(), catalogue=None, usage=None):
    """Changes of some providers, and of no others."""
    return Changes(BEGINNING, False, records, list(removed), catalogue, usage or {})


def forest_of(records):
    """A Forest of these providers."""
    forest = Forest()
    forest.apply(complete(records))
    return forest


def wide_trees(trees, children, units=1, resource_class="CUSTOM_DEVICE"):
    """Trees whose root has VCPU and whose children are all alike."""
    records = []
    for _ in range(trees):
        root = len(records) + 1
        records.append(record(root, inventories={"VCPU": 64}))
        records += [
            record(number, root, root, {resource_class: units})
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


class LimitedBudget(Budget):
    """A budget that fails a search which checks it more than so many times."""

    def __init__(self, most):
        super().__init__()
        self._left = most

    def check(self):
        self._left -= 1
        assert self._left, "the search tries too much"


class MeasuringBudget(Budget):
    """A budget that notes the most bytes that were held at a time."""

    most = 0

    def hold(self, nbytes):
        """Note the bytes that are held."""
        super().hold(nbytes)
        self.most = max(self.most, self._held)


def distinct(answer):
    """The candidates as comparable values."""
    return {
        json.dumps(allocation_request, sort_keys=True)
        for allocation_request in answer["allocation_requests"]
    }
