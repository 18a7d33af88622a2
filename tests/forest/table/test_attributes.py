# SPDX-License-Identifier: Apache-2.0
"""Attributes as columns: whatever happens to the rows, they tell what the records say."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.building import BEGINNING, CATALOGUE, forest_of, news, record
from tests.forest.domains.test_splices import IDS, Cloud
from tests.properties.forest_adapter import LOWERED, lowered
from treeclaim.forest.table.attributes import ABSENT
from treeclaim.forest.table.forest import Forest
from treeclaim.model.attributes import AttributeKind, Attributes, same_attributes
from treeclaim.model.changes import Changes
from treeclaim.model.whole import AttributeRows, InventoryColumns, Links, WholeInventory

ATTRIBUTES = st.dictionaries(
    st.sampled_from(["mem_gib", "driver", "ecc"]),
    st.booleans() | st.integers(-1, 1) | st.sampled_from(["a", "b", "1"]),
)


def told_by_rows(forest):
    """The attributes of each provider, read by row and by column, which have to agree."""
    rows = forest.living_rows
    found = {int(forest.id.values[row]): forest.attributes_of(row) for row in rows.tolist()}
    for name in ("mem_gib", "driver", "ecc", "unknown"):
        for some in (rows, rows[::-1], rows[:1], rows[-1:]):
            kinds, values = forest.attributes.at(name, some)
            for row, kind, value in zip(
                some.tolist(), kinds.tolist(), values.tolist(), strict=True
            ):
                attributes = found[int(forest.id.values[row])]
                if kind == ABSENT:
                    assert name not in attributes and value == 0
                elif kind == AttributeKind.TEXT:
                    assert attributes[name] == forest.attributes.texts[value]
                else:
                    assert attributes[name] == value
                    assert isinstance(attributes[name], bool) == (kind == AttributeKind.BOOL)
    return found


def assert_right(forest, records):
    found = told_by_rows(forest)
    assert found.keys() == {one.id for one in records}
    for one in records:
        assert same_attributes(found[one.id], one.attributes), (found[one.id], one.attributes)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{}, LOWERED], ids=["usual", "lowered"])
def test_attributes_follow_provider_changes(limits):
    steps = st.lists(
        st.tuples(st.sampled_from(["create", "delete", "change", "move", "describe"]), IDS, IDS),
        max_size=30,
    )

    @settings(deadline=None)
    @given(steps=steps, described=st.lists(ATTRIBUTES, min_size=30, max_size=30))
    def follows(steps, described):
        with lowered(limits):
            cloud = Cloud()
            for (step, number, other), attributes in zip(steps, described, strict=False):
                if step != "describe":
                    getattr(cloud, step)(number, other)
                elif number in cloud.records:
                    cloud.tell(replace(cloud.records[number], attributes=attributes))
                assert_right(cloud.forest, cloud.records.values())

    follows()


def test_equal_values_of_different_types_are_distinct():
    forest = forest_of([replace(record(1), attributes={"ecc": True})])
    changed = replace(record(1), attributes={"ecc": 1})
    forest.apply(news(changed))
    assert forest.record(forest.row_of_id(1)).attributes["ecc"] is not True


def test_compaction_keeps_attributes():
    generator = random.Random(1)
    kinds = [None, True, False, 3, "3", "text"]

    def described(number):
        value = generator.choice(kinds)
        return replace(
            record(number, inventories={"VCPU": 1}),
            attributes={} if value is None else {"mem_gib": value, "driver": f"v{number}"},
        )

    records = {number: described(number) for number in range(1, 400)}
    with lowered(LOWERED):
        forest = forest_of(records.values())
        for number in range(1, 400, 3):
            records[number] = described(number)
            forest.apply(news(records[number]))
        while not forest.is_tidy:
            forest.tidy()
    assert_right(forest, records.values())


def test_whole_inventory_loads_like_records():
    none = np.zeros(0, dtype=np.int64)
    nothing = np.zeros(0)
    whole = WholeInventory(
        id=np.array([1, 2, 5]),
        uuid=np.array([b"%036d" % number for number in (1, 2, 5)], dtype="S36"),
        name=["one", "two", "five"],
        generation=np.zeros(3, dtype=np.int64),
        parent_id=np.array([-1, 1, -1]),
        modified_at=np.zeros(3),
        inventories=InventoryColumns(
            none, none, none, none, none, none, none, nothing, none, nothing
        ),
        links={name: Links(none, none) for name in ("traits", "aggregates", "conditions")},
        attributes=AttributeRows(
            provider_id=np.array([5, 1, 5, 2, 9]),
            name=np.array([0, 0, 1, 1, 0]),
            value=np.array([0, 1, 2, 3, 0]),
            names=["mem_gib", "driver"],
            values=[80, True, "570", "1"],
        ),
    )
    forest = Forest()
    forest.apply(
        Changes(BEGINNING, complete=True, records=(), removed=(), catalogue=CATALOGUE, whole=whole)
    )
    found = told_by_rows(forest)
    expected: dict[int, Attributes] = {
        1: {"mem_gib": True},
        2: {"driver": "1"},
        5: {"mem_gib": 80, "driver": "570"},
    }
    assert found.keys() == expected.keys()
    assert all(same_attributes(found[number], expected[number]) for number in expected)
