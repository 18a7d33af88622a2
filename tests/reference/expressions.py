# SPDX-License-Identifier: Apache-2.0
"""Expressions about attributes by brute force: contract page 102, section 1, in another way.

Each term is evaluated by itself, from the text; the rest, brackets and operators, binds in Python
as it does on the page, so that Python combines the truth values.
"""

import operator
import re
from itertools import zip_longest

from hypothesis import strategies as st

VALUE = r"(?:-\s*)?[0-9]+|'(?:[^']|'')*'|true|false|v[0-9]+(?:\.[0-9]+)*"
TERM = re.compile(
    rf"\bexists\s+(?P<there>\w+)"
    rf"|(?P<member>\w+)\s+in\s*\((?P<list>\s*(?:{VALUE})(?:\s*,\s*(?:{VALUE}))*\s*)\)"
    rf"|(?P<name>\w+)\s*(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>{VALUE})"
    r"|\b(?!(?:and|or|not)\b)(?P<alone>[a-z]\w*)"
)
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(text, attributes):
    """Return whether an expression holds for a provider with these attributes."""
    truths = TERM.sub(lambda term: str(is_true(term, attributes)), text)
    return eval(truths.strip(), {"__builtins__": {}})


def is_true(term, attributes):
    """Return whether a term holds."""
    if term["there"]:
        return term["there"] in attributes
    if term["member"]:
        values = re.findall(VALUE, term["list"])
        return any(compares(attributes.get(term["member"]), "==", value) for value in values)
    if term["name"]:
        return compares(attributes.get(term["name"]), term["op"], term["value"])
    return attributes.get(term["alone"]) is True


def compares(actual, op, value):
    """Return whether a comparison holds; None is a missing value."""
    if value.startswith("v"):
        if not isinstance(actual, str) or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", actual):
            return False
        pairs = zip_longest(actual.split("."), value[1:].split("."), fillvalue="0")
        actual_numbers, value_numbers = zip(
            *((int(first), int(second)) for first, second in pairs), strict=True
        )
        return OPERATORS[op](actual_numbers, value_numbers)
    if value in ("true", "false"):
        other = value == "true"
    elif value.startswith("'"):
        other = value[1:-1].replace("''", "'")
    else:
        other = int(value.replace(" ", ""))
    return type(actual) is type(other) and OPERATORS[op](actual, other)


NAMES = ("mem_gib", "driver", "ecc", "node")
UNKNOWN = "v1"

texts = st.sampled_from(["a", "it's", "1", "1.0", "570.86.10", "570.86", "0", "", "true", "v1"])
numbers = st.integers(-2, 3) | st.sampled_from([2**53 - 1, 1 - 2**53])
attributes = st.dictionaries(
    st.sampled_from(NAMES), st.booleans() | numbers | texts.filter(bool), max_size=4
)
"""The attributes of a provider."""

versions = st.sampled_from(["v1", "v1.0", "v0", "v570.86", "v570.86.10.0", "v570.9", "v2.1"])
ordered_values = (numbers | st.just(2**70)).map(str) | versions
unordered_values = texts.map(lambda text: "'" + text.replace("'", "''") + "'") | st.sampled_from(
    ["true", "false"]
)
values = ordered_values | unordered_values


@st.composite
def terms(draw):
    """A term of an expression, with spaces here and there."""
    name = draw(st.sampled_from((*NAMES, UNKNOWN)))
    space = draw(st.sampled_from(["", " ", "  "]))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return f"exists {space}{name}"
    if kind == 1:
        return name
    if kind == 2:
        listed = f"{space},".join(draw(st.lists(values, min_size=1, max_size=3)))
        return f"{name} in{space}({space}{listed})"
    op = draw(st.sampled_from(sorted(OPERATORS)))
    value = draw(values if op in ("==", "!=") else ordered_values)
    return f"{name}{space}{op}{space}{value}"


@st.composite
def bracketed(draw, inner):
    """Return parts with words between them, in brackets."""
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    words = [draw(st.sampled_from([" and ", " or "])) for _ in parts[1:]]
    text = parts[0] + "".join(word + part for word, part in zip(words, parts[1:], strict=True))
    return draw(st.sampled_from(["(", "( "])) + text + ")"


def negated(inner):
    """A part, or its opposite."""
    return st.tuples(st.sampled_from(["", "", "not "]), inner).map("".join)


expressions = st.recursive(
    negated(terms()), lambda inner: negated(bracketed(inner)), max_leaves=6
).flatmap(
    lambda first: st.sampled_from(
        [first, f"{first} or ecc", f"not ecc and {first}", f"ecc and {first} or not node == 1"]
    )
)
"""Expressions that can be read."""
