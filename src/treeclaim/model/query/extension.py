# SPDX-License-Identifier: Apache-2.0
"""Parses the parameters that the extension has, or reads differently (contract page 97, section 2).

Every function raises `InvalidQueryError` with the name of the parameter.
"""

import re
from collections.abc import Collection, Mapping

from treeclaim.model.claim import MOST_SOURCES
from treeclaim.model.extension.expressions import Expression, ExpressionError, read_expression
from treeclaim.model.microversions import Version
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.provider import CONDITION_KEY, is_attribute_name
from treeclaim.model.query.errors import (
    InvalidQueryError,
    repeated_parameter,
    unusable_parameter,
)
from treeclaim.model.query.parameters import Repetition, parameter_named
from treeclaim.model.query.value_parsers import (
    invalid_query,
    parse_member_of,
    parse_required,
    split_list,
)
from treeclaim.model.request import ProviderConditions, SubtreeList, ValueList

Values = Mapping[str, list[str]]
"""All values of each parameter, in order."""


def require_once(values: Values) -> None:
    """Refuse parameters that are given twice."""
    for name, texts in values.items():
        parameter = parameter_named(name) if len(texts) > 1 else None
        if parameter is not None and parameter.repeated is Repetition.REFUSED:
            raise repeated_parameter(quote_value(name))


def _items(values: Values, name: str) -> list[str]:
    """Return the items of all values of a parameter, which are separated by commas."""
    return [item.strip() for value in values.get(name, []) for item in value.split(",")]


def parse_root(values: Values, version: Version) -> ProviderConditions:
    """Parse what the anchor root must be; without the extension that is one value of `root_required`."""
    required = values.get("root_required", [])
    if len(required) > 1 and not version.is_extended:
        raise repeated_parameter("root_required")
    traits = ProviderConditions.together(
        parse_required(value, version, any_allowed=version.is_extended) for value in required
    )
    never = [names for names in traits.required if names <= traits.forbidden]
    if never:
        conflicts = ", ".join(sorted(frozenset[str]().union(*never)))
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
    where = tuple(parse_where("root_where", text) for text in values.get("root_where", []))
    return ProviderConditions.together(
        [traits, membership, trees, ProviderConditions(where=where)]
    )


def _parse_root_in_tree(values: Values) -> ProviderConditions:
    """Parse `root_in_tree`: uuids whose trees are wanted, and uuids whose trees are not (page 98, section 2)."""
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


def parse_isolate(values: Values, suffixes: Collection[str]) -> frozenset[str]:
    """Parse `isolate`, which names suffixes of groups of the request."""
    if "isolate" in values and "group_policy" in values:
        raise unusable_parameter("isolate", "it cannot be combined with group_policy.")
    named = frozenset(_items(values, "isolate"))
    _require_suffixes("isolate", sorted(named), suffixes)
    return named


def _require_suffixes(parameter: str, named: Collection[str], suffixes: Collection[str]) -> None:
    for suffix in named:
        if suffix not in suffixes:
            raise unusable_parameter(
                parameter, f"no group has the suffix {quote_value(suffix)!r}."
            )


def parse_same_subtree(values: Values, version: Version) -> tuple[SubtreeList, ...]:
    """Parse `same_subtree`, where `!` marks groups that must be outside in the extension."""
    lists = []
    for value in values.get("same_subtree", []):
        suffixes = dict.fromkeys(suffix.strip() for suffix in value.split(","))
        marked = [suffix for suffix in suffixes if version.is_extended and suffix.startswith("!")]
        outside = tuple(suffix[1:] for suffix in marked)
        inside = tuple(suffix for suffix in suffixes if suffix not in marked)
        if not all((*inside, *outside)):
            raise InvalidQueryError(
                "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
                "bad_value",
                "same_subtree",
            )
        if not inside:
            raise unusable_parameter(
                "same_subtree",
                f"at least one suffix must be without '!'. Got: {quote_value(value)}",
            )
        contrary = sorted(set(inside) & set(outside))
        if contrary:
            raise unusable_parameter(
                "same_subtree", f"{quote_value(contrary[0])} is named with and without '!'."
            )
        lists.append(SubtreeList(inside, outside))
    return tuple(lists)


def parse_trees(name: str, value: str) -> tuple[str, ...]:
    """Parse a value of `in_tree` or `in_subtree`: one uuid, or several after `in:`."""
    uuids = split_list(value)
    if not all(map(normalised_uuid, uuids)):
        raise invalid_query(
            f"Expected '{name}' parameter to be a format of uuid, or in:uuid,uuid. "
            f"Got: {quote_value(value)}"
        )
    return tuple(uuids)


def parse_tolerates(name: str, value: str) -> frozenset[str]:
    """Parse a value of `tolerates` (contract page 102, section 3): keys of conditions."""
    keys = [key.strip() for key in value.split(",")]
    for key in keys:
        if re.fullmatch(CONDITION_KEY, key) is None:
            raise unusable_parameter(name, f"{quote_value(key)!r} is not a key of a condition.")
    return frozenset(keys)


def parse_can_split(values: Values, resources: Collection[str]) -> frozenset[str]:
    """Parse `can_split`, which names classes of the unsuffixed group."""
    named = _items(values, "can_split")
    for name in named:
        if name not in resources:
            raise unusable_parameter(
                "can_split", f"{quote_value(name)!r} is not in the unsuffixed resources."
            )
    return frozenset(named)


def parse_from_holds(values: Values) -> tuple[str, ...]:
    """Parse `from_holds` (contract page 100, section 2): uuids of holds, each once."""
    holds: dict[str, None] = {}
    texts = _items(values, "from_holds")
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
    """Parse a value of `where` or `root_where` (contract page 102, section 1)."""
    try:
        return read_expression(text)
    except ExpressionError as error:
        raise unusable_parameter(name, f"it cannot be parsed at column {error.column}.") from error


def parse_value_lists(values: Values, suffixes: Collection[str]) -> tuple[ValueList, ...]:
    """Parse `match` and `distinct`, which name an attribute and suffixes of groups of the request."""
    lists = []
    for parameter in ("match", "distinct"):
        for value in values.get(parameter, []):
            name, *named_suffixes = value.split(":")
            if not is_attribute_name(name):
                raise unusable_parameter(
                    parameter, f"{quote_value(name)!r} is not the name of an attribute."
                )
            _require_suffixes(parameter, named_suffixes, suffixes)
            named = tuple(dict.fromkeys(named_suffixes))
            if len(named) < 2:  # noqa: PLR2004 - one value is the same as itself
                raise unusable_parameter(parameter, "two or more different suffixes are needed.")
            lists.append(ValueList(name, named, is_same=parameter == "match"))
    return tuple(lists)
