# SPDX-License-Identifier: Apache-2.0
"""Expressions hold for the trees of the definition, for random expressions and trees."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.building import forest_of, record
from tests.reference.expressions import attributes, expressions, holds
from treeclaim.forest.domains.expressions import filter_by_expressions
from treeclaim.model.extension.expressions import read_expression


def satisfy(text, all_attributes):
    """The numbers of the providers, given their attributes, that satisfy an expression."""
    forest = forest_of(
        [
            replace(record(number), attributes=attributes_of_provider)
            for number, attributes_of_provider in enumerate(all_attributes, 1)
        ]
    )
    rows = forest.living_rows
    result = filter_by_expressions(forest.attributes, [read_expression(text)], rows[::-1])
    assert (np.diff(result) < 0).all(), "the order of the rows is kept"
    return {int(forest.id.values[row]) - 1 for row in result.tolist()}


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(expressions, st.lists(attributes, min_size=1, max_size=6))
def test_expression_matches_as_defined(text, all_attributes):
    expected = {
        number
        for number, attributes_of_provider in enumerate(all_attributes)
        if holds(text, attributes_of_provider)
    }
    assert satisfy(text, all_attributes) == expected


BIG = 2**53 - 1

CASES = [
    ("a", [True, False, 1, "true", None], {0}),
    ("not a", [True, False, 1, "true", None], {1, 2, 3, 4}),
    ("exists a", [False, 0, "", None], {0, 1, 2}),
    ("a == 1", [1, True, "1", None], {0}),
    ("a != 1", [1, 2, True, "1", None], {1}),
    ("not a == 1", [1, 2, True, "1", None], {1, 2, 3, 4}),
    ("a != true", [1, 2, True, False, "1", None], {3}),
    ("a != 'x'", [1, True, "1", "x", None], {2}),
    ("a in (1, '1', false)", [1, True, "1", False, None], {0, 2, 3}),
    ("a < 99999999999999999999", [BIG, -BIG, True, "1"], {0, 1}),
    ("a == 9007199254740992", [BIG, -BIG], set()),
    ("a != -9007199254740992", [BIG, -BIG, "x"], {0, 1}),
    ("a >= -9007199254740991 and a <= - 9007199254740991", [BIG, -BIG], {1}),
    ("a == v1", ["1", "1.0", "1.0.0", "01", "1.", "v1", "1.1", 1], {0, 1, 2, 3}),
    ("a != v1", ["1", "1.0", "1.1", "x", "", 1, None], {2}),
    ("a >= v570.86", ["570.86", "570.9", "570.100", "571", "570.86.1", "57", "570"], {0, 2, 3, 4}),
    ("a < v2", ["1.999999999", "1.9999999999", "10", "2"], {0}),
    ("a == 'it''s'", ["it's", "it''s"], {0}),
    ("a or a == 2 and a == 3", [True, 2, 3], {0}),
    ("(a or a == 2) and not a == 3", [True, 2, 3], {0, 1}),
    ("b", [True, 1], set()),
    ("not exists b", [True, 1], {0, 1}),
]


@pytest.mark.parametrize(("text", "values", "expected"), CASES, ids=[case[0] for case in CASES])
def test_expression_matches_the_expected_providers(text, values, expected):
    all_attributes = [{} if value is None else {"a": value} for value in values]
    assert satisfy(text, all_attributes) == expected
    for number, attributes_of_provider in enumerate(all_attributes):
        assert holds(text, attributes_of_provider) == (number in expected)
