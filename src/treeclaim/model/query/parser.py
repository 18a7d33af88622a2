# SPDX-License-Identifier: Apache-2.0
"""Parses queries for allocation candidates (contract page 90, sections 1 and 2).

`extension` parses the parameters that the extension adds or changes.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.query import extension
from treeclaim.model.query.extension import parse_order, parse_preferences
from treeclaim.model.query.parameters import split_name
from treeclaim.model.query.value_parsers import (
    InvalidQueryError,
    invalid_query,
    parse_member_of,
    parse_required,
    parse_resources,
    require_repeatable,
)
from treeclaim.model.request import (
    NO_GROUP,
    CandidateRequest,
    Preference,
    ProviderConditions,
    RequestGroup,
    SplitPolicy,
    SubtreeList,
)

_MOST_LIMIT_DIGITS = 18

NO_LIMIT = 10**_MOST_LIMIT_DIGITS
"""Replaces all greater limits, which have the same effect; it fits into 64 bits."""


_NO_CONDITIONS = ProviderConditions()


@dataclass(slots=True)
class _Group:
    resources: dict[str, int] = field(default_factory=dict)
    conditions: ProviderConditions = _NO_CONDITIONS
    member_of: list[str] = field(default_factory=list)
    preferred: tuple[Preference, ...] = ()


_Groups = Mapping[str, _Group]


def require_few_groups(names: Sequence[str], most_names: int) -> None:
    """Refuse more than `most_names` request groups in the names of parameters."""
    count = len({split_name(name)[1] for name in names} - {None})
    if count > most_names:
        raise invalid_query(
            f"{count} request groups are more than {most_names} ([treeclaim]/max_request_groups)."
        )


def parse_query(
    pairs: Sequence[tuple[str, str]], values: Mapping[str, list[str]], version: Version
) -> CandidateRequest:
    """Parse a query that matches the schema of the version; the search checks later whether its names exist.

    `values` has the values of `pairs` by name, in order.

    Raises:
        InvalidQueryError: for the first fault in the order of section 2.
    """
    if version.is_extended:
        extension.require_once(values)
    root = extension.parse_root(values, version)
    subtrees = extension.parse_same_subtree(values, version)
    groups = _parse_groups(pairs, values, version)
    _check_completeness(groups, subtrees, version)
    _check_conflicts(groups)
    request = CandidateRequest(
        groups=tuple(
            [
                RequestGroup(suffix, group.resources, group.conditions)
                for suffix, group in groups.items()
            ]
        ),
        root=root,
        same_subtree=subtrees,
        isolated=_isolated_groups(values, groups.keys() - {NO_GROUP}, version),
        limit=_parse_limit(values["limit"][0]) if "limit" in values else None,
        nested=version.has(Feature.NESTED_CANDIDATES),
    )
    return _add_extension(request, values, groups) if version.is_extended else request


def _add_extension(
    request: CandidateRequest, values: Mapping[str, list[str]], groups: _Groups
) -> CandidateRequest:
    resources = {suffix: group.resources for suffix, group in groups.items()}
    preferences = [preference for group in groups.values() for preference in group.preferred]
    return replace(
        request,
        values=extension.parse_value_lists(values, resources.keys() - {NO_GROUP}),
        can_split=extension.parse_can_split(values, resources.get(NO_GROUP, ())),
        split_policy=SplitPolicy(values.get("split_policy", [SplitPolicy.PACK])[0]),
        order=parse_order(
            next(iter(values.get("order_by", ())), None), resources, preferences, request.limit
        ),
        from_holds=extension.parse_from_holds(values),
    )


def _isolated_groups(
    values: Mapping[str, list[str]], suffixes: AbstractSet[str], version: Version
) -> frozenset[str]:
    """Return the suffixes of groups that must not share a provider."""
    if len(suffixes) > 1 and "group_policy" not in values and not version.is_extended:
        raise InvalidQueryError(
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.'
        )
    isolated_suffixes = (
        extension.parse_isolate(values, suffixes) if version.is_extended else frozenset()
    )
    is_isolating = values.get("group_policy", ["none"])[0] == "isolate"
    return frozenset(suffixes) if is_isolating else isolated_suffixes


def _parse_limit(digits: str) -> int:
    # Python refuses to parse some thousand digits.
    return int(digits) if len(digits) <= _MOST_LIMIT_DIGITS else NO_LIMIT


def _parse_groups(
    pairs: Sequence[tuple[str, str]], values: Mapping[str, list[str]], version: Version
) -> dict[str, _Group]:
    """Parse the parameters of the groups in the order of the query (step C)."""
    groups: dict[str, _Group] = {}
    for name, value in pairs:
        kind, suffix = split_name(name)
        if suffix is None:
            continue
        group = groups.setdefault(suffix, _Group())
        if kind == "resources":
            group.resources = parse_resources(value)
        elif kind == "required":
            if version.has(Feature.ANY_TRAITS):
                group.conditions = group.conditions.plus(parse_required(value, version))
            else:
                # Until 1.38 only the last value applies.
                traits = parse_required(values[name][-1], version)
                group.conditions = replace(
                    group.conditions, required=traits.required, forbidden=traits.forbidden
                )
        elif kind == "member_of":
            group.member_of.append(value)
            # Faults of values are reported in the order of the query.
            aggregates = parse_member_of([value], version, suffix)
            require_repeatable(group.member_of, version, suffix)
            group.conditions = group.conditions.plus(aggregates)
        elif version.is_extended:
            _parse_extension(group, kind, suffix, value)
        else:
            group.conditions = replace(group.conditions, in_tree=(_parse_in_tree(value),))
    return groups


def _parse_extension(group: _Group, kind: str, suffix: str, value: str) -> None:
    name = kind + suffix
    if kind == "preferred":
        group.preferred = parse_preferences(name, suffix, value)
    elif kind == "where":
        where_conditions = ProviderConditions(where=(extension.parse_where(name, value),))
        group.conditions = group.conditions.plus(where_conditions)
    elif kind == "tolerates":
        tolerance_conditions = ProviderConditions(tolerates=extension.parse_tolerates(name, value))
        group.conditions = group.conditions.plus(tolerance_conditions)
    else:
        trees: dict[str, Any] = {kind: extension.parse_trees(kind, value)}
        group.conditions = replace(group.conditions, **trees)


def _parse_in_tree(value: str) -> str:
    uuid = value.strip()
    if normalised_uuid(uuid) is None:
        raise invalid_query(
            f"Expected 'in_tree' parameter to be a format of uuid. Got: {quote_value(value)}"
        )
    return uuid


def _check_completeness(
    groups: _Groups, subtrees: tuple[SubtreeList, ...], version: Version
) -> None:
    """Refuse groups without resources, except those in `same_subtree` (step D)."""
    if version.has(Feature.SAME_SUBTREE):
        _check_resourceless(groups, subtrees)
        return
    bare_groups = {suffix: group for suffix, group in groups.items() if not group.resources}
    orphaned_keys = [
        f"required{suffix}" for suffix, group in bare_groups.items() if group.conditions.required
    ]
    if orphaned_keys:
        raise InvalidQueryError(
            "All traits parameters must be associated with resources.  Found the following "
            "orphaned traits keys: " + ", ".join(orphaned_keys)
        )
    orphaned_keys = [
        f"member_of{suffix}" for suffix, group in bare_groups.items() if group.member_of
    ]
    if orphaned_keys:
        raise InvalidQueryError(
            "All member_of parameters must be associated with resources. Found the following "
            "orphaned member_of keys: " + ", ".join(orphaned_keys)
        )
    if bare_groups:
        raise InvalidQueryError("All request groups must specify resources.")
    if not groups:
        raise InvalidQueryError(
            "At least one request group (`resources` or `resources{$S}`) is required."
        )


def _check_resourceless(groups: _Groups, subtrees: tuple[SubtreeList, ...]) -> None:
    bare_suffixes = [suffix for suffix, group in groups.items() if not group.resources]
    if len(bare_suffixes) == len(groups):
        raise InvalidQueryError(
            "There must be at least one resources or resources[$S] parameter.",
            "missing_value",
            "resources",
        )
    if not bare_suffixes and not subtrees:
        return
    named_suffixes = {
        suffix for subtree in subtrees for suffix in (*subtree.inside, *subtree.outside)
    }
    missing_suffixes = [suffix for suffix in bare_suffixes if suffix not in named_suffixes]
    if missing_suffixes:
        raise InvalidQueryError(
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {quote_value(missing_suffixes)}.",
            "bad_value",
            "same_subtree",
        )
    known_suffixes = groups.keys() - {NO_GROUP}
    unreal_suffixes = sorted(named_suffixes - known_suffixes)
    if unreal_suffixes:
        raise InvalidQueryError(
            f"Real suffixes should be specified in `same_subtree`: {quote_value(unreal_suffixes)} not found in "
            f"{quote_value(sorted(known_suffixes))}.",
            "bad_value",
            "same_subtree",
        )


def _check_conflicts(groups: _Groups) -> None:
    """Refuse traits that are both required and forbidden (step E)."""
    conflicts = []
    for suffix, group in groups.items():
        required_traits, forbidden_traits = group.conditions.required, group.conditions.forbidden
        traits = frozenset[str]().union(*filter(forbidden_traits.issuperset, required_traits))
        if traits:
            conflicts.append(f"required{suffix}: ({', '.join(sorted(traits))})")
    if conflicts:
        raise InvalidQueryError(
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(conflicts)
        )
