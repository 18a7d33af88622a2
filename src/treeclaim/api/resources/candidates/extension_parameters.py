# SPDX-License-Identifier: Apache-2.0
"""Parameters of GET /allocation_candidates that the extension has, or reads differently (page 97, section 2).

Every function raises ApiError, a 400 that names the parameter, for what it cannot read.
"""

import re
from collections.abc import Collection

from treeclaim.api.protocol import errors
from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.texts import quote_value
from treeclaim.api.resources.candidates import order_parameters as ordering
from treeclaim.api.resources.candidates.order_parameters import Values, bad_parameter
from treeclaim.model.attributes import is_attribute_name
from treeclaim.model.extension.conditions import KEY
from treeclaim.model.extension.expressions import Expression, ExpressionError, read_expression
from treeclaim.model.extension.holds import MOST_SOURCES
from treeclaim.model.microversions import Version
from treeclaim.model.names import normalised_uuid
from treeclaim.model.request import ProviderConditions, SplitPolicy, SubtreeList, ValueList


def root(values: Values, version: Version) -> ProviderConditions:
    """Read what the anchor root must be; without the extension that is one value of `root_required`."""
    required = values.get("root_required", [])
    if len(required) > 1 and not version.is_extended:
        raise bad_request(
            "Query parameter 'root_required' may be specified only once.", errors.DUPLICATE_KEY
        )
    traits = parameters.Traits.together(
        parameters.required(value, version, any_allowed=version.is_extended) for value in required
    )
    never = [names for names in traits.required if names <= traits.forbidden]
    if never:
        conflicts = ", ".join(sorted(frozenset[str]().union(*never)))
        raise bad_request(
            f"Conflicting required and forbidden traits found in root_required: {conflicts}",
            errors.BAD_VALUE,
        )
    try:
        membership = parameters.member_of(values.get("root_member_of", []), version)
    except ApiError as error:
        raise bad_parameter("root_member_of", error.detail) from error
    in_tree, not_in_tree = ordering.root_in_tree(values)
    return ProviderConditions(
        required=traits.required,
        forbidden=traits.forbidden,
        member_of=membership.member_of,
        forbidden_aggregates=membership.forbidden,
        in_tree=in_tree,
        not_in_tree=not_in_tree,
        where=tuple(expression("root_where", text) for text in values.get("root_where", [])),
    )


def isolated(values: Values, suffixes: Collection[str]) -> frozenset[str]:
    """Read `isolate`, which names suffixes of groups of the request."""
    if "isolate" not in values:
        return frozenset()
    if "group_policy" in values:
        raise bad_parameter("isolate", "it cannot be combined with group_policy.")
    named = [suffix.strip() for value in values["isolate"] for suffix in value.split(",")]
    unknown = sorted(set(named) - set(suffixes))
    if unknown:
        raise bad_parameter("isolate", f"no group has the suffix {quote_value(unknown[0])!r}.")
    return frozenset(named)


def same_subtree(values: Values, version: Version) -> tuple[SubtreeList, ...]:
    """Read `same_subtree`, where `!` marks groups that must be outside in the extension."""
    mark = "!" if version.is_extended else None
    lists = []
    for value in values.get("same_subtree", []):
        suffixes = list(dict.fromkeys(suffix.strip() for suffix in value.split(",")))
        outside = tuple(suffix[1:] for suffix in suffixes if mark and suffix.startswith(mark))
        inside = tuple(suffix for suffix in suffixes if not (mark and suffix.startswith(mark)))
        if not all((*inside, *outside)):
            raise bad_request(
                "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
                errors.BAD_VALUE,
            )
        if not inside:
            raise bad_parameter(
                "same_subtree",
                f"at least one suffix must be without '!'. Got: {quote_value(value)}",
            )
        contrary = sorted(set(inside) & set(outside))
        if contrary:
            raise bad_parameter(
                "same_subtree", f"{quote_value(contrary[0])} is named with and without '!'."
            )
        lists.append(SubtreeList(inside, outside))
    return tuple(lists)


def uuids(name: str, value: str) -> tuple[str, ...]:
    """Read a value of `in_tree` or `in_subtree`: one uuid, or several after `in:`."""
    text = value.strip()
    if text.startswith("in:"):
        listed = [uuid.strip() for uuid in text.removeprefix("in:").split(",")]
    else:
        listed = [text]
    if not all(map(normalised_uuid, listed)):
        raise bad_request(
            f"Invalid query string parameters: Expected '{name}' parameter to be a format of "
            f"uuid, or in:uuid,uuid. Got: {quote_value(value)}"
        )
    return tuple(listed)


def tolerates(name: str, value: str) -> frozenset[str]:
    """Read a value of `tolerates` (contract page 102, section 3): keys of conditions."""
    keys = [key.strip() for key in value.split(",")]
    strange = [key for key in keys if re.fullmatch(KEY, key) is None]
    if strange:
        raise bad_parameter(name, f"{quote_value(strange[0])!r} is not a key of a condition.")
    return frozenset(keys)


def can_split(values: Values, resources: Collection[str]) -> frozenset[str]:
    """Read `can_split`, which names classes of the unsuffixed group."""
    named = [name.strip() for value in values.get("can_split", []) for name in value.split(",")]
    strange = [name for name in named if name not in resources]
    if strange:
        raise bad_parameter(
            "can_split", f"{quote_value(strange[0])!r} is not in the unsuffixed resources."
        )
    return frozenset(named)


def split_policy(values: Values) -> SplitPolicy:
    """Read `split_policy`; its value was checked before."""
    return SplitPolicy(values.get("split_policy", [SplitPolicy.PACK])[0])


def from_holds(values: Values) -> tuple[str, ...]:
    """Read `from_holds` (contract page 100, section 2): uuids of holds, each once."""
    if "from_holds" not in values:
        return ()
    texts = [uuid.strip() for uuid in values["from_holds"][0].split(",")]
    holds = [normalised_uuid(uuid) for uuid in texts]
    for uuid, hold_uuid in zip(texts, holds, strict=True):
        if hold_uuid is None:
            raise bad_parameter("from_holds", f"expected uuid,uuid. Got: {quote_value(uuid)}")
    if len(texts) > MOST_SOURCES:
        raise bad_parameter("from_holds", f"more than {MOST_SOURCES} holds are named.")
    if len(set(holds)) < len(holds):
        raise bad_parameter("from_holds", "a hold is named twice.")
    return tuple(uuid for uuid in holds if uuid is not None)


def expression(name: str, text: str) -> Expression:
    """Read a value of `where` or `root_where` (contract page 102, section 1)."""
    try:
        return read_expression(text)
    except ExpressionError as error:
        raise bad_parameter(name, f"it cannot be parsed at column {error.column}.") from error


def value_lists(values: Values, suffixes: Collection[str]) -> tuple[ValueList, ...]:
    """Read `match` and `distinct`, which name an attribute and suffixes of groups of the request."""
    lists = []
    for parameter in ("match", "distinct"):
        for value in values.get(parameter, []):
            name, *named_suffixes = value.split(":")
            if not is_attribute_name(name):
                raise bad_parameter(
                    parameter, f"{quote_value(name)!r} is not the name of an attribute."
                )
            unknown = [suffix for suffix in named_suffixes if suffix not in suffixes]
            if unknown:
                raise bad_parameter(
                    parameter, f"no group has the suffix {quote_value(unknown[0])!r}."
                )
            named = tuple(dict.fromkeys(named_suffixes))
            if len(named) < 2:  # noqa: PLR2004 - one value is the same as itself
                raise bad_parameter(parameter, "two or more different suffixes are needed.")
            lists.append(ValueList(name, named, is_same=parameter == "match"))
    return tuple(lists)
