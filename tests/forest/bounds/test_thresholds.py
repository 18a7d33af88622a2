# SPDX-License-Identifier: Apache-2.0
"""All sizes that choose a path of the search can be lowered together."""

from tests.properties.forest_adapter import LOWERED
from treeclaim.forest.bounds import thresholds


def names():
    """The thresholds that there are."""
    return {name for name in vars(thresholds) if name.isupper()}


def test_each_threshold_has_a_lower_value_for_tests():
    assert {name for name in LOWERED if "." not in name} == names()
    assert [name for name in names() if LOWERED[name] >= getattr(thresholds, name)] == []
