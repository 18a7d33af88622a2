# SPDX-License-Identifier: Apache-2.0
"""Rows by key: those of a full load, and what came and went since."""

from hypothesis import given
from hypothesis import strategies as st

from treeclaim.forest.table.columns import NO_ROW, Column
from treeclaim.forest.table.register import RowIndex

KEYS = st.sets(st.integers(1, 40))


@given(KEYS, KEYS, KEYS, st.integers(0, 41), st.integers(1, 9))
def test_least_keys_after_a_key_are_existing_ones(first, gone, new, key, count):
    loaded, row = sorted(first), Column("int32")
    keys = [*loaded, *sorted(new - first)]
    row.extend(range(len(keys)))
    index = RowIndex(row, keys.__getitem__)
    index.begin_with(loaded, len(loaded))
    for handle in range(len(loaded), len(keys)):
        index[keys[handle]] = handle
    for handle, name in enumerate(keys):
        if name in gone:
            del index[name]
            row.values[handle] = NO_ROW
    found = sorted(keys[at] for at in index.behind(key, count).tolist())
    assert found == sorted(name for name in {*keys} - gone if name > key)[:count]
