# SPDX-License-Identifier: Apache-2.0
"""Expressions about attributes beside the Common Expression Language, as its own makers evaluate it.

The two overlap but for versions, and numbers beyond 64 bits. What a term comes to where an attribute is
not there, or of another type, is an error in CEL, or depends on the operator: so each comparison is put
behind a look at both (contract page 102, section 1). Strings, equality, `in`, what binds first and what
follows from truths are CEL's own.
"""

import re
from functools import cache

from cel_expr_python import cel
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.domains.test_expressions import satisfy
from tests.reference.expressions import (
    TERM,
    VALUE,
    attributes,
    expressions_of,
    numbers,
    terms,
    unordered_values,
)

WORDS = {"and": "&&", "or": "||", "not": "!"}
TYPES = {"'": "string", "t": "bool", "f": "bool"}
"""By the first letter of a value; others are integers."""

whole = numbers.map(str)
shared = expressions_of(terms(values=whole | unordered_values, ordered_values=whole))
"""Expressions whose meaning CEL knows."""


def translated(text):
    """An expression in CEL, about the map `own`."""
    parts, end = [], 0
    for term in TERM.finditer(text):
        parts += [words(text[end : term.start()]), f"({term_of(term)})"]
        end = term.end()
    return "".join([*parts, words(text[end:])])


def words(between):
    """Parts between terms: brackets and words."""
    return re.sub("and|or|not", lambda word: WORDS[word[0]], between)


def term_of(term):
    name = f"own.{term['there'] or term['member'] or term['name'] or term['alone']}"
    if term["there"]:
        return f"has({name})"
    if term["member"]:
        listed = ", ".join(map(literal, re.findall(VALUE, term["list"])))
        return f"has({name}) && {name} in [{listed}]"
    value = term["value"] or "true"
    kind = TYPES.get(value[0], "int")
    return f"has({name}) && type({name}) == {kind} && {name} {term['op'] or '=='} {literal(value)}"


def literal(value):
    if value.startswith("'"):
        return "'" + value[1:-1].replace("''", "\\'") + "'"
    return value


@cache
def environment():
    """An environment in which CEL reads expressions about the map `own`."""
    return cel.NewEnv(variables={"own": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)})


def cel_says(text, own):
    """Return whether CEL says that an expression holds."""
    result = environment().compile(translated(text)).eval(data={"own": own}).value()
    assert isinstance(result, bool), (translated(text), result)
    return result


@settings(deadline=None)
@given(shared, st.lists(attributes, min_size=1, max_size=6))
def test_expression_matches_the_providers_that_cel_matches(text, all_attributes):
    expected = {number for number, own in enumerate(all_attributes) if cel_says(text, own)}
    assert satisfy(text, all_attributes) == expected


def test_cel_and_expressions_distinguish_value_types_alike():
    text = "ecc in (1, 'true') and not node == -1 or driver == 'it''s'"
    assert translated(text) == (
        "(has(own.ecc) && own.ecc in [1, 'true']) && ! (has(own.node) && type(own.node) == int && "
        "own.node == -1) || (has(own.driver) && type(own.driver) == string && own.driver == 'it\\'s')"
    )
    everybody = [{"ecc": True}, {"ecc": 1}, {"ecc": "true", "node": -1}, {"driver": "it's"}]
    assert [cel_says(text, own) for own in everybody] == [False, True, False, True]
    assert satisfy(text, everybody) == {1, 3}
