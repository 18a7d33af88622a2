# SPDX-License-Identifier: Apache-2.0
"""Held amounts as columns (contract page 100, section 5)."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.forest_adapter import forest_of
from tests.reference.world import Provider, Stock, World, uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.held import with_free


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["VCPU", "VGPU"])), st.integers(1, 30)
    )
)
def test_held_amounts_of_existing_inventories_are_free(held):
    forest = forest_of(World((
        Provider("b", None, {"VCPU": Stock(10, used=30), "VGPU": Stock(3, used=3)}),
        Provider("a", "b", {"VCPU": Stock(10, reserved=2, allocation_ratio=1.5, used=12)}),
        Provider("c", None, {"VGPU": Stock(8, used=40)}),
    )))  # fmt: skip
    ids = {name: entry.id for name, entry in forest.catalogue.resource_classes.items()}
    by_name, by_id = {}, Counter()
    for (provider, name), amount in held.items():
        by_name.setdefault(uuid_of(provider), {})[name] = amount
        row = forest.row_of(uuid_of(provider))
        if row is not None:
            by_id[int(forest.id.values[row]), ids[name]] = amount
    result = with_free(forest, [by_name], Budget())
    for number, columns in forest.classes.items():
        living = columns.living()
        providers = forest.id.values[columns.row.values[living]].tolist()
        freed = [by_id[provider, number] for provider in providers]
        now = result.classes[number]
        assert (columns.used.values[living] - now.used.values[living]).tolist() == freed
        assert (now.free.values[living] - columns.free.values[living]).tolist() == freed
