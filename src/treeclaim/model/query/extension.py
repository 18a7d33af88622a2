# SPDX-License-Identifier: Apache-2.0
"""Parses the parameters that the extension adds or changes (contract pages 97, 98, 100, 101 and 102).

Each parser raises `InvalidQueryError` with the name of the parameter.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from treeclaim.model.claim import MOST_SOURCES
from treeclaim.model.extension.expressions import Expression, ExpressionError, read_expression
from treeclaim.model.extension.planning import Mix
from treeclaim.model.microversions import Version
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.provider import CONDITION_KEY, is_attribute_name
from treeclaim.model.query.parameters import find_parameter
from treeclaim.model.query.value_parsers import (
    InvalidQueryError,
    invalid_query,
    parse_member_of,
    parse_required,
    repeated_parameter,
    split_list,
    unusable_parameter,
)
from treeclaim.model.request import (
    MOST_CANDIDATES,
    NO_GROUP,
    CandidateRequest,
    Order,
    Preference,
    ProviderConditions,
    SubtreeList,
    Term,
    TermName,
    ValueList,
)

ParameterValues = Mapping[str, list[str]]
"""All values of each parameter, in order."""


def require_once(values: ParameterValues) -> None:
    """Refuse repeated parameters that may not be repeated."""
    for name, texts in values.items():
        parameter = find_parameter(name) if len(texts) > 1 else None
        if parameter is not None and not parameter.may_repeat:
            raise repeated_parameter(quote_value(name))


def _split_items(values: ParameterValues, name: str) -> list[str]:
    """Return the comma-separated items of all values of a parameter."""
    return [item.strip() for value in values.get(name, []) for item in value.split(",")]


def parse_root(values: ParameterValues, version: Version) -> ProviderConditions:
    """Parse the conditions on the anchor root; without the extension, only one `root_required` is allowed."""
    required_values = values.get("root_required", [])
    if len(required_values) > 1 and not version.is_extended:
        raise repeated_parameter("root_required")
    traits = ProviderConditions.together(
        parse_required(value, version, any_allowed=version.is_extended)
        for value in required_values
    )
    conflicts = ", ".join(
        sorted(frozenset[str]().union(*filter(traits.forbidden.issuperset, traits.required)))
    )
    if conflicts:
        raise InvalidQueryError(
            f"Conflicting required and forbidden traits found in root_required: {conflicts}",
            "bad_value",
            "root_required",
        )
    try:
        membership = parse_member_of(values.get("root_member_of", []), version)
    except InvalidQueryError as error:
        raise unusable_parameter("root_member_of", str(error)) from error
    trees = _parse_root_in_tree(values)
    expressions = tuple(parse_where("root_where", text) for text in values.get("root_where", []))
    return ProviderConditions.together(
        [traits, membership, trees, ProviderConditions(where=expressions)]
    )


def _parse_root_in_tree(values: ParameterValues) -> ProviderConditions:
    """Parse `root_in_tree`: uuids of providers in the wanted trees, or after `!`, in unwanted trees."""
    if "root_in_tree" not in values:
        return ProviderConditions()
    value = values["root_in_tree"][0]
    text = value.strip()
    uuid_list = text.removeprefix("!")
    uuids = tuple(split_list(uuid_list)) if uuid_list.startswith("in:") else (uuid_list,)
    if not all(map(normalised_uuid, uuids)):
        raise unusable_parameter(
            "root_in_tree", f"expected a uuid, or in:uuid,uuid. Got: {quote_value(value)}"
        )
    if text.startswith("!"):
        return ProviderConditions(not_in_tree=uuids)
    return ProviderConditions(in_tree=uuids)


def parse_isolate(values: ParameterValues, suffixes: Collection[str]) -> frozenset[str]:
    """Parse `isolate`: suffixes of groups that share no provider."""
    if "isolate" in values and "group_policy" in values:
        raise unusable_parameter("isolate", "it cannot be combined with group_policy.")
    named_suffixes = frozenset(_split_items(values, "isolate"))
    _require_suffixes("isolate", sorted(named_suffixes), suffixes)
    return named_suffixes


def _require_suffixes(
    parameter: str, named_suffixes: Collection[str], suffixes: Collection[str]
) -> None:
    for suffix in named_suffixes:
        if suffix not in suffixes:
            raise unusable_parameter(
                parameter, f"no group has the suffix {quote_value(suffix)!r}."
            )


def parse_same_subtree(values: ParameterValues, version: Version) -> tuple[SubtreeList, ...]:
    """Parse `same_subtree`; with the extension, `!` marks groups outside the subtree."""
    lists = []
    for value in values.get("same_subtree", []):
        suffixes = dict.fromkeys(suffix.strip() for suffix in value.split(","))
        marked_suffixes = [
            suffix for suffix in suffixes if version.is_extended and suffix.startswith("!")
        ]
        outside_suffixes = tuple(suffix[1:] for suffix in marked_suffixes)
        inside_suffixes = tuple(suffix for suffix in suffixes if suffix not in marked_suffixes)
        if not all((*inside_suffixes, *outside_suffixes)):
            raise InvalidQueryError(
                "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
                "bad_value",
                "same_subtree",
            )
        if not inside_suffixes:
            raise unusable_parameter(
                "same_subtree",
                f"at least one suffix must be without '!'. Got: {quote_value(value)}",
            )
        contradictory_suffixes = sorted(set(inside_suffixes) & set(outside_suffixes))
        if contradictory_suffixes:
            raise unusable_parameter(
                "same_subtree",
                f"{quote_value(contradictory_suffixes[0])} is named with and without '!'.",
            )
        lists.append(SubtreeList(inside_suffixes, outside_suffixes))
    return tuple(lists)


def parse_trees(name: str, value: str) -> tuple[str, ...]:
    """Parse a value of `in_tree` or `in_subtree`: `UUID` or `in:UUID,…`."""
    uuids = split_list(value)
    if not all(map(normalised_uuid, uuids)):
        raise invalid_query(
            f"Expected '{name}' parameter to be a format of uuid, or in:uuid,uuid. "
            f"Got: {quote_value(value)}"
        )
    return tuple(uuids)


def parse_tolerates(name: str, value: str) -> frozenset[str]:
    """Parse a value of `tolerates`: keys of conditions."""
    keys = [key.strip() for key in value.split(",")]
    for key in keys:
        if re.fullmatch(CONDITION_KEY, key) is None:
            raise unusable_parameter(name, f"{quote_value(key)!r} is not a key of a condition.")
    return frozenset(keys)


def parse_can_split(values: ParameterValues, resources: Collection[str]) -> frozenset[str]:
    """Parse `can_split`: classes of the unsuffixed group."""
    named_classes = _split_items(values, "can_split")
    for name in named_classes:
        if name not in resources:
            raise unusable_parameter(
                "can_split", f"{quote_value(name)!r} is not in the unsuffixed resources."
            )
    return frozenset(named_classes)


def parse_from_holds(values: ParameterValues) -> tuple[str, ...]:
    """Parse `from_holds`: different uuids of holds."""
    holds: dict[str, None] = {}
    texts = _split_items(values, "from_holds")
    for text in texts:
        uuid = normalised_uuid(text)
        if uuid is None:
            raise unusable_parameter("from_holds", f"expected uuid,uuid. Got: {quote_value(text)}")
        holds[uuid] = None
    if len(texts) > MOST_SOURCES:
        raise unusable_parameter("from_holds", f"more than {MOST_SOURCES} holds are named.")
    if len(holds) < len(texts):
        raise unusable_parameter("from_holds", "a hold is named twice.")
    return tuple(holds)


def parse_where(name: str, text: str) -> Expression:
    """Parse a value of `where` or `root_where`."""
    try:
        return read_expression(text)
    except ExpressionError as error:
        raise unusable_parameter(name, f"it cannot be parsed at column {error.column}.") from error


def parse_value_lists(values: ParameterValues, suffixes: Collection[str]) -> tuple[ValueList, ...]:
    """Parse `match` and `distinct`: an attribute, and suffixes of groups."""
    lists = []
    for parameter in ("match", "distinct"):
        for value in values.get(parameter, []):
            name, *suffix_items = value.split(":")
            if not is_attribute_name(name):
                raise unusable_parameter(
                    parameter, f"{quote_value(name)!r} is not the name of an attribute."
                )
            _require_suffixes(parameter, suffix_items, suffixes)
            named_suffixes = tuple(dict.fromkeys(suffix_items))
            if len(named_suffixes) < 2:  # noqa: PLR2004 - one value has no other to compare with
                raise unusable_parameter(parameter, "two or more different suffixes are needed.")
            lists.append(ValueList(name, named_suffixes, is_same=parameter == "match"))
    return tuple(lists)


_MOST_TERMS = 16
_MOST_WEIGHT = 1_000
_WEIGHT = re.compile(r"[1-9][0-9]{0,3}")
_SEED = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PAIR = 2
"""Number of arguments of `keep`, `most` and `least`."""

_CLASS_TERMS = frozenset(
    {TermName.PACK, TermName.PACK_PROVIDERS, TermName.SPREAD, TermName.SPREAD_PROVIDERS}
)

_Resources = Mapping[str, Mapping[str, int]]
"""Amounts by the suffix of the group and by class."""


def parse_preferences(name: str, suffix: str, value: str) -> tuple[Preference, ...]:
    """Parse `preferred` of a group."""
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
    value: str | None, groups: _Resources, preferences: Sequence[Preference], limit: int | None
) -> Order | None:
    """Parse `order_by`, which may be omitted; `with_mixes` adds the mixes that it names."""
    items = [] if value is None else value.split(",")
    if len(items) > _MOST_TERMS:
        raise unusable_parameter("order_by", f"{len(items)} terms are more than {_MOST_TERMS}.")
    terms = [_parse_term(item, groups) for item in items]
    has_preferred = any(term.name is TermName.PREFERRED for term in terms)
    if has_preferred and not preferences:
        raise unusable_parameter(
            "order_by", "the term 'preferred' needs the parameter of that name."
        )
    if preferences and not has_preferred:
        terms.append(Term(TermName.PREFERRED))
    if not terms:
        return None
    if limit is not None and limit > MOST_CANDIDATES:
        raise unusable_parameter(
            "limit", f"an ordered search returns at most {MOST_CANDIDATES} candidates."
        )
    return Order(tuple(terms), tuple(preferences))


def _split_weight(name: str, item: str) -> tuple[str, int]:
    text, star, weight = item.strip().partition("*")
    if not star:
        return text, 1
    if not _WEIGHT.fullmatch(weight) or int(weight) > _MOST_WEIGHT:
        raise unusable_parameter(
            name, f"a weight is a number from 1 to {_MOST_WEIGHT}. Got: {quote_value(item)}"
        )
    return text, int(weight)


def with_mixes(request: CandidateRequest, mixes: Mapping[str, Mix]) -> CandidateRequest:
    """Add the mixes of a request's order, given the existing ones by name.

    Raises:
        InvalidQueryError: for an unknown mix, or a class that no request of the mix requests.
    """
    order = request.order
    if order is None or not order.mix_names:
        return request
    for term in order.terms:
        if term.name is TermName.KEEP:
            name, resource_class = term.arguments
            if name not in mixes:
                raise unusable_parameter("order_by", f"there is no mix {quote_value(name)!r}.")
            if resource_class not in mixes[name].classes:
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
    if name in _CLASS_TERMS:
        requested_classes = {
            resource_class for group in groups.values() for resource_class in group
        }
        unknown_classes = [argument for argument in arguments if argument not in requested_classes]
        return (
            f"{quote_value(unknown_classes[0])!r} is not requested." if unknown_classes else None
        )
    if name in (TermName.NEAR, TermName.FAR):
        is_single = len(set(arguments)) < 2  # noqa: PLR2004 - a distance needs two groups
        return _find_unknown_suffix(arguments, groups) or (
            "two or more different suffixes are needed." if is_single else None
        )
    if name in (TermName.MOST, TermName.LEAST):
        if len(arguments) != _PAIR or not is_attribute_name(arguments[0]):
            return "the name of an attribute and a suffix are needed."
        return _find_unknown_suffix(arguments[1:], groups)
    are_valid, problem = not arguments, "it takes no arguments."
    if name is TermName.SHUFFLE:
        are_valid = len(arguments) == 1 and _SEED.fullmatch(arguments[0]) is not None
        problem = "one seed of [A-Za-z0-9_.-]{1,64} is needed."
    elif name is TermName.KEEP:
        are_valid = len(arguments) == _PAIR and all(arguments)
        problem = "the name of a mix and a class are needed."
    return None if are_valid else problem


def _find_unknown_suffix(suffixes: Sequence[str], groups: _Resources) -> str | None:
    for suffix in suffixes:
        if suffix == NO_GROUP or suffix not in groups:
            return f"no suffixed group has the suffix {quote_value(suffix)!r}."
    return None
