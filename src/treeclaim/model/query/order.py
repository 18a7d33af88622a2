# SPDX-License-Identifier: Apache-2.0
"""Parses `order_by` and `preferred` (contract pages 98, 101 and 102, sections 2, 3, 1).

Every function raises `InvalidQueryError` with the name of the parameter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from treeclaim.model.extension.order import MOST_CANDIDATES, Order, Preference, Term, TermName
from treeclaim.model.extension.planning import Mix
from treeclaim.model.names import quote_value
from treeclaim.model.provider import is_attribute_name
from treeclaim.model.query.errors import unusable_parameter
from treeclaim.model.request import NO_GROUP, CandidateRequest

_MOST_TERMS = 16
_MOST_WEIGHT = 1_000
_WEIGHT = re.compile(r"[1-9][0-9]{0,3}")
_SEED = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PAIR = 2
"""Arguments of `keep`, `most` and `least`."""

_OF_CLASSES = frozenset(
    {TermName.PACK, TermName.PACK_PROVIDERS, TermName.SPREAD, TermName.SPREAD_PROVIDERS}
)

_Resources = Mapping[str, Mapping[str, int]]
"""The amounts of each group, by its suffix."""


def parse_preferences(name: str, suffix: str, value: str) -> tuple[Preference, ...]:
    """Parse `preferred` of the group with a suffix."""
    preferences = []
    for item in value.split(","):
        text, weight = _split_weight(name, item)
        trait = text.removeprefix("!")
        if not trait or trait.startswith("!"):
            raise unusable_parameter(
                name, f"expected TRAIT[*WEIGHT],… or !TRAIT. Got: {quote_value(value)}"
            )
        preferences.append(Preference(suffix, trait, not text.startswith("!"), weight))
    return tuple(preferences)


def parse_order(
    value: str | None, groups: _Resources, preferred: Sequence[Preference], limit: int | None
) -> Order | None:
    """Parse `order_by`.

    The mixes that it names are not known here: see `with_mixes`.

    Args:
        value: Its value; None if it is omitted.
        groups: The amounts of each group.
        preferred: The preferences of all groups.
        limit: The limit of the request.
    """
    items = [] if value is None else value.split(",")
    if len(items) > _MOST_TERMS:
        raise unusable_parameter("order_by", f"{len(items)} terms are more than {_MOST_TERMS}.")
    terms = [_parse_term(item, groups) for item in items]
    is_named = any(term.name is TermName.PREFERRED for term in terms)
    if is_named and not preferred:
        raise unusable_parameter(
            "order_by", "the term 'preferred' needs the parameter of that name."
        )
    if preferred and not is_named:
        terms.append(Term(TermName.PREFERRED))
    if not terms:
        return None
    if limit is not None and limit > MOST_CANDIDATES:
        raise unusable_parameter(
            "limit", f"an ordered search returns at most {MOST_CANDIDATES} candidates."
        )
    return Order(tuple(terms), tuple(preferred))


def _split_weight(name: str, item: str) -> tuple[str, int]:
    """Split an item from its weight."""
    text, star, weight = item.strip().partition("*")
    if not star:
        return text, 1
    if not _WEIGHT.fullmatch(weight) or int(weight) > _MOST_WEIGHT:
        raise unusable_parameter(
            name, f"a weight is a number from 1 to {_MOST_WEIGHT}. Got: {quote_value(item)}"
        )
    return text, int(weight)


def with_mixes(request: CandidateRequest, mixes: Mapping[str, Mix]) -> CandidateRequest:
    """Return a request with the mixes that its order names.

    Args:
        request: The request.
        mixes: Mixes by name; at least the existing ones.

    Raises:
        InvalidQueryError: for an unknown mix, or a class that none of its requests has.
    """
    order = request.order
    if order is None or not order.mix_names:
        return request
    for term in order.terms:
        if term.name is TermName.KEEP:
            name, resource_class = term.arguments
            if name not in mixes:
                raise unusable_parameter("order_by", f"there is no mix {quote_value(name)!r}.")
            if not mixes[name].asks_for(resource_class):
                raise unusable_parameter(
                    "order_by",
                    f"no request of the mix {quote_value(name)!r} requests {quote_value(resource_class)!r}.",
                )
    named_mixes = tuple(mixes[name] for name in sorted(order.mix_names))
    return replace(request, order=replace(order, mixes=named_mixes))


def _parse_term(item: str, groups: _Resources) -> Term:
    text, weight = _split_weight("order_by", item)
    term_text, *arguments = text.split(":")
    if term_text not in list(TermName):
        raise unusable_parameter("order_by", f"there is no term {quote_value(term_text)!r}.")
    name = TermName(term_text)
    problem = _find_problem(name, arguments, groups)
    if problem is not None:
        raise unusable_parameter("order_by", f"{problem} Got: {quote_value(item)}")
    return Term(name, tuple(arguments), weight)


def _find_problem(name: TermName, arguments: Sequence[str], groups: _Resources) -> str | None:
    """Return what is wrong with the arguments of a term; None if they are right."""
    if name in _OF_CLASSES:
        requested = {resource_class for group in groups.values() for resource_class in group}
        unknown = [argument for argument in arguments if argument not in requested]
        return f"{quote_value(unknown[0])!r} is not requested." if unknown else None
    if name in (TermName.NEAR, TermName.FAR):
        is_one = len(set(arguments)) < 2  # noqa: PLR2004 - of one thing nothing is near
        return _find_unknown_suffix(arguments, groups) or (
            "two or more different suffixes are needed." if is_one else None
        )
    if name in (TermName.MOST, TermName.LEAST):
        if len(arguments) != _PAIR or not is_attribute_name(arguments[0]):
            return "the name of an attribute and a suffix are needed."
        return _find_unknown_suffix(arguments[1:], groups)
    are_right, problem = not arguments, "it takes no arguments."
    if name is TermName.SHUFFLE:
        are_right = len(arguments) == 1 and _SEED.fullmatch(arguments[0]) is not None
        problem = "one seed of [A-Za-z0-9_.-]{1,64} is needed."
    elif name is TermName.KEEP:
        are_right = len(arguments) == _PAIR and all(arguments)
        problem = "the name of a mix and a class are needed."
    return None if are_right else problem


def _find_unknown_suffix(suffixes: Sequence[str], groups: _Resources) -> str | None:
    for suffix in suffixes:
        if suffix == NO_GROUP or suffix not in groups:
            return f"no suffixed group has the suffix {quote_value(suffix)!r}."
    return None
