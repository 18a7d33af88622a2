# SPDX-License-Identifier: Apache-2.0
"""Expressions about attributes: valid texts, their meaning, and where parsing ends."""

import pytest

from treeclaim.model.extension.expressions import (
    Comparison,
    Conjunction,
    Disjunction,
    Existence,
    ExpressionError,
    Negation,
    Operator,
    VersionValue,
    read_expression,
)


def is_true(name):
    return Comparison(name, Operator.EQUAL, (True,))


def compared(name, operator, *values):
    return Comparison(name, Operator(operator), values)


def version(*numbers):
    return VersionValue(numbers)


A, B, C = map(is_true, "abc")

READ = {
    "a": A,
    "  a  ": A,
    "a or b and not c": Disjunction((A, Conjunction((B, Negation(C))))),
    "not a or b": Disjunction((Negation(A), B)),
    "not a and b": Conjunction((Negation(A), B)),
    "not(a or b)and c": Conjunction((Negation(Disjunction((A, B))), C)),
    "not (not a)": Negation(Negation(A)),
    "a or b or c": Disjunction((A, B, C)),
    "(a and (b))": Conjunction((A, B)),
    "exists a": Existence("a"),
    "not exists v100": Negation(Existence("v100")),
    "a==1": compared("a", "==", 1),
    "a != -1": compared("a", "!=", -1),
    "a<- 1": compared("a", "<", -1),
    "a <= 007": compared("a", "<=", 7),
    "a > 99999999999999999999": compared("a", ">", 99999999999999999999),
    "a == true": compared("a", "==", True),
    "a != false": compared("a", "!=", False),
    "a == 'x'": compared("a", "==", "x"),
    "a == 'it''s'": compared("a", "==", "it's"),
    "a == ''": compared("a", "==", ""),
    "a == ''''": compared("a", "==", "'"),
    "a == ' or b'or b": Disjunction((compared("a", "==", " or b"), B)),
    "a == 'ä\n'": compared("a", "==", "ä\n"),
    "a >= v570.86": compared("a", ">=", version(570, 86)),
    "a == v1.0.0": compared("a", "==", version(1)),
    "a == v0": compared("a", "==", version()),
    "v100 == v100": compared("v100", "==", version(100)),
    "a in (1)": compared("a", "==", 1),
    "a in(1,-2 , 'x',v3,true)": compared("a", "==", 1, -2, "x", version(3), True),
    "v1and or nota and inn": Disjunction(
        (is_true("v1and"), Conjunction((is_true("nota"), is_true("inn"))))
    ),
    f"{'(' * 16}a{')' * 16}": A,
    f"{'(' * 15}a in (1){')' * 15}": compared("a", "==", 1),
    f"{'a' * 63}": is_true("a" * 63),
    f"a in ({', '.join(['1'] * 64)})": compared("a", "==", *[1] * 64),
    "a".ljust(1_024): A,
}

REFUSED = {
    "": 1,
    "   ": 4,
    "and": 1,
    "a and": 6,
    "a or": 5,
    "not": 4,
    "exists": 7,
    "exists ": 8,
    "a ==": 5,
    "a == ": 6,
    "a == -": 7,
    "a in": 5,
    "a in (": 7,
    "a in (1": 8,
    "a in (1,": 9,
    "(a": 3,
    "()": 2,
    "a)": 2,
    "a b": 3,
    "a 1": 3,
    "a 'x'": 3,
    "a 'x": 3,
    "a == 'x": 8,
    "a == 'x''": 10,
    "a == 'x' 'y'": 10,
    "a = 1": 3,
    "a === 1": 5,
    "a =< 1": 3,
    "a <> 1": 4,
    "a ! = 1": 3,
    "a == b": 6,
    "a == and": 6,
    "a == A": 6,
    "a == v1x": 6,
    "a == v": 6,
    "a == v1.": 8,
    "a == v1.x": 8,
    "a == v1.2x": 8,
    "a == v1234567890": 6,
    "a == v1.1234567890": 8,
    "a == -v1": 7,
    "a == --1": 7,
    "a == -true": 7,
    "a == 1.5": 7,
    "a == 1and b": 6,
    "a == -1and b": 7,
    "a == 1 and 2": 12,
    "a >= 0or b": 6,
    "a < 'x'": 5,
    "a >= true": 6,
    "a >= 'x": 6,
    "a in 1": 6,
    "a in ()": 7,
    "a in (1 2)": 9,
    "a in (1,)": 9,
    "a in (b)": 7,
    "not not a": 5,
    "a not b": 3,
    "1 == a": 1,
    "true": 1,
    "exists true": 8,
    "exists (a)": 8,
    "in == 1": 1,
    "A": 1,
    "ab.c": 3,
    "a-b": 2,
    "aB or c": 1,
    "naïve": 1,
    "a\tand b": 2,
    "a\u00a0and b": 2,
    "a and\nb": 6,
    "a && b": 3,
    "a, b": 2,
    "_a": 1,
    "a" * 64: 1,
    "a AND b": 3,
    "a == ٣": 6,
    "a == 1²": 6,
    f"{'(' * 17}a{')' * 17}": 17,
    f"{'(' * 16}a in (1){')' * 16}": 22,
    f"a in ({','.join(['1'] * 65)})": 7 + 2 * 64,
    f"a in ({','.join(['1'] * 64)}) or a == -1": 7 + 2 * 64 + 9,
    "a".ljust(1_025): 1_025,
}


@pytest.mark.parametrize("text", READ, ids=repr)
def test_valid_expression_is_parsed(text):
    expression = read_expression(text)
    assert repr(expression.node) == repr(READ[text])
    assert expression.text == text


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:40])
def test_syntax_error_has_the_column_of_the_first_invalid_token(text):
    with pytest.raises(ExpressionError) as raised:
        read_expression(text)
    assert raised.value.column == REFUSED[text]


def test_expression_lists_each_name_once_in_order():
    expression = read_expression("b == 1 or exists a and not b in (2) or v1 == v1")
    assert expression.names == ("b", "a", "v1")


def test_expressions_with_values_of_different_types_differ():
    assert read_expression("a == 1").node == read_expression("a == true").node
    assert read_expression("a == 1") != read_expression("a == true")
    assert read_expression("a == 1") == read_expression("a == 1")
    assert len({read_expression("a == 1"), read_expression("a == true")}) == 2
