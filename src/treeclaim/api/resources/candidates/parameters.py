# SPDX-License-Identifier: Apache-2.0
"""Reads the query of GET /allocation_candidates (contract page 90, sections 1 and 2).

What the extension reads differently is in `extension_parameters`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter

from treeclaim.api.protocol import errors
from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.validation import (
    Checker,
    invalid_query,
    length_of_pairs,
    query_pairs,
)
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.api.protocol.texts import quote_value
from treeclaim.api.resources.candidates import extension_parameters as extension
from treeclaim.api.resources.candidates import order_parameters as ordering
from treeclaim.api.resources.candidates.schemas import QUERY
from treeclaim.model.extension.expressions import Expression
from treeclaim.model.extension.order import Preference
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import normalised_uuid
from treeclaim.model.query_parameters import split_name
from treeclaim.model.request import (
    NO_GROUP,
    CandidateRequest,
    ProviderConditions,
    RequestGroup,
    SubtreeList,
)

_LONGEST_CACHED = 8_192
"""Characters of a query whose request is cached: 2 MiB for all, and ten times that for the requests."""

_MOST_LIMIT_DIGITS = 18
"""Digits of a limit that make a difference: more candidates are in no answer."""

NO_LIMIT = 10**_MOST_LIMIT_DIGITS
"""The limit that stands for all greater ones; it fits into 64 bits."""

_FIRST_COUNTS = ("limit", "group_policy")
"""Placement checks all values of these, and takes the first (contract page 90, note N5)."""


_SplitNames = Mapping[str, tuple[str, str | None]]
"""The names of parameters as `split_name` has them."""


@dataclass(slots=True)
class _Group:
    """The parameters with one suffix, as they are read."""

    resources: dict[str, int] = field(default_factory=dict)
    required: list[parameters.Traits] = field(default_factory=list)
    traits: parameters.Traits = field(default_factory=parameters.Traits)
    member_of: list[str] = field(default_factory=list)
    membership: parameters.Membership = field(default_factory=parameters.Membership)
    in_tree: tuple[str, ...] = ()
    in_subtree: tuple[str, ...] = ()
    preferred: tuple[Preference, ...] = ()
    where: tuple[Expression, ...] = ()
    tolerates: frozenset[str] = frozenset()


@cache_short(longest=_LONGEST_CACHED)
def request_of(query_string: str, version: Version, most_groups: int) -> CandidateRequest:
    """Read a query string. Schedulers send few different queries, so the results are kept.

    Raises:
        ApiError: 400, as `candidate_request`.
    """
    return candidate_request(query_pairs(query_string), version, most_groups)


def candidate_request(
    pairs: list[tuple[str, str]], version: Version, most_groups: int
) -> CandidateRequest:
    """Read and check a query; whether the names in it exist is found out by the search.

    How many groups it has is judged before anything else of it is looked at.

    Raises:
        ApiError: 400, in the order of section 2.
    """
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    split_names = {name: split_name(name) for name in values}
    _require_few_groups(split_names, most_groups)
    _check_names(values, QUERY.at(version))
    extended = version.is_extended
    if extended:
        ordering.require_once(values)
    root = extension.root(values, version)
    subtrees = extension.same_subtree(values, version)
    groups = _groups(pairs, split_names, values, version)
    _check_completeness(groups, subtrees, version)
    _check_conflicts(groups)
    suffixed = frozenset(groups) - {NO_GROUP}
    isolated = _isolated_groups(values, suffixed, version)
    request = CandidateRequest(
        groups=tuple([_request_group(suffix, group) for suffix, group in groups.items()]),
        root=root,
        same_subtree=subtrees,
        isolated=isolated,
        limit=_limit(values["limit"][0]) if "limit" in values else None,
        nested=version.has(Feature.NESTED_CANDIDATES),
        knows_conditions=False,
    )
    return _add_extension(request, values, groups) if extended else request


def _add_extension(
    request: CandidateRequest,
    values: Mapping[str, list[str]],
    groups: Mapping[str, _Group],
) -> CandidateRequest:
    """Add what only the extension has parameters for."""
    resources = {suffix: group.resources for suffix, group in groups.items()}
    preferred = [preference for group in groups.values() for preference in group.preferred]
    return replace(
        request,
        values=extension.value_lists(values, resources.keys() - {NO_GROUP}),
        can_split=extension.can_split(values, resources.get(NO_GROUP, ())),
        split_policy=extension.split_policy(values),
        order=ordering.order(values, resources, preferred, request.limit),
        from_holds=extension.from_holds(values),
        knows_conditions=True,
    )


def _isolated_groups(
    values: dict[str, list[str]], suffixed: frozenset[str], version: Version
) -> frozenset[str]:
    """Return the groups of which no two may be served by the same provider."""
    if len(suffixed) > 1 and "group_policy" not in values and not version.is_extended:
        raise bad_request(
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.'
        )
    isolated = suffixed if values.get("group_policy", ["none"])[0] == "isolate" else frozenset()
    return isolated | extension.isolated(values, suffixed) if version.is_extended else isolated


def _limit(digits: str) -> int:
    """Read a number that the schema has checked; Python reads only some thousand digits."""
    return int(digits) if len(digits) <= _MOST_LIMIT_DIGITS else NO_LIMIT


def _require_few_groups(split_names: _SplitNames, most: int) -> None:
    count = len(set(map(itemgetter(1), split_names.values())) - {None})
    if count > most:
        raise invalid_query(
            f"{count} request groups are more than {most} ([treeclaim]/max_request_groups)."
        )


def _check_names(values: Mapping[str, list[str]], checker: Checker) -> None:
    """Step A: names, and the values that are not of a group."""
    first = {name: value_texts[0] for name, value_texts in values.items()}
    problem = checker.problem(first, length=length_of_pairs(first.items()))
    if problem is not None:
        raise invalid_query(problem)
    for name in _FIRST_COUNTS:
        for value in values.get(name, [])[1:]:
            # The first counts, but a malformed one is wrong wherever it stands (note N5).
            problem = checker.problem({"resources": "", name: value}, length=len(value))
            if problem is not None:
                raise invalid_query(problem)


def _groups(
    pairs: list[tuple[str, str]],
    split_names: _SplitNames,
    values: Mapping[str, list[str]],
    version: Version,
) -> dict[str, _Group]:
    """Step C: the parameters of the groups, in the order of the query."""
    groups: dict[str, _Group] = {}
    for name, value in pairs:
        kind, suffix = split_names[name]
        if suffix is None:
            continue
        group = groups.setdefault(suffix, _Group())
        if kind == "resources":
            group.resources = parameters.resources(value)
        elif kind == "required":
            # Until 1.38 only the last value is looked at.
            traits_text = value if version.has(Feature.ANY_TRAITS) else values[name][-1]
            group.required.append(parameters.required(traits_text, version))
        elif kind == "member_of":
            group.member_of.append(value)
            # Faults of values are reported in the order of the query.
            parameters.member_of([value], version, suffix)
            parameters.require_repeatable(group.member_of, version, suffix)
        elif version.is_extended:
            _take_extension(group, kind, suffix, value)
        else:
            group.in_tree = (_in_tree(value),)
    for suffix, group in groups.items():
        if group.required:
            latest = group.required if version.has(Feature.ANY_TRAITS) else group.required[-1:]
            group.traits = parameters.Traits.together(latest)
        if group.member_of:
            group.membership = parameters.member_of(group.member_of, version, suffix)
    return groups


def _take_extension(group: _Group, kind: str, suffix: str, value: str) -> None:
    """Take a parameter of a group that means what the extension says."""
    name = kind + suffix
    if kind == "preferred":
        group.preferred = ordering.preferences(name, suffix, value)
    elif kind == "where":
        group.where += (extension.expression(name, value),)
    elif kind == "tolerates":
        group.tolerates |= extension.tolerates(name, value)
    else:
        setattr(group, kind, extension.uuids(kind, value))


def _in_tree(value: str) -> str:
    uuid = value.strip()
    if normalised_uuid(uuid) is None:
        raise bad_request(
            f"Invalid query string parameters: Expected 'in_tree' parameter to be a format of "
            f"uuid. Got: {quote_value(value)}"
        )
    return uuid


def _check_completeness(
    groups: Mapping[str, _Group], subtrees: tuple[SubtreeList, ...], version: Version
) -> None:
    """Step D: which groups may do without resources."""
    if version.has(Feature.SAME_SUBTREE):
        _check_resourceless(groups, subtrees)
        return
    bare = {suffix: group for suffix, group in groups.items() if not group.resources}
    orphans = [f"required{suffix}" for suffix, group in bare.items() if group.traits.required]
    if orphans:
        raise bad_request(
            "All traits parameters must be associated with resources.  Found the following "
            "orphaned traits keys: " + ", ".join(orphans)
        )
    orphans = [f"member_of{suffix}" for suffix, group in bare.items() if group.member_of]
    if orphans:
        raise bad_request(
            "All member_of parameters must be associated with resources. Found the following "
            "orphaned member_of keys: " + ", ".join(orphans)
        )
    if bare:
        raise bad_request("All request groups must specify resources.")
    if not groups:
        raise bad_request(
            "At least one request group (`resources` or `resources{$S}`) is required."
        )


def _check_resourceless(groups: Mapping[str, _Group], subtrees: tuple[SubtreeList, ...]) -> None:
    bare = [suffix for suffix, group in groups.items() if not group.resources]
    if len(bare) == len(groups):
        raise bad_request(
            "There must be at least one resources or resources[$S] parameter.",
            errors.MISSING_VALUE,
        )
    if not bare and not subtrees:
        return
    named = {suffix for subtree in subtrees for suffix in (*subtree.inside, *subtree.outside)}
    missing = [suffix for suffix in bare if suffix not in named]
    if missing:
        raise bad_request(
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {quote_value(missing)}.",
            errors.BAD_VALUE,
        )
    unreal = sorted(named - (groups.keys() - {NO_GROUP}))
    if unreal:
        raise bad_request(
            f"Real suffixes should be specified in `same_subtree`: {quote_value(unreal)} not found in "
            f"{quote_value(sorted(groups.keys() - {NO_GROUP}))}.",
            errors.BAD_VALUE,
        )


def _check_conflicts(groups: Mapping[str, _Group]) -> None:
    """Step E: traits both required and forbidden."""
    conflicts = []
    for suffix, group in groups.items():
        forbidden = group.traits.forbidden
        wrong = frozenset[str]().union(*filter(forbidden.issuperset, group.traits.required))
        if wrong:
            conflicts.append(f"required{suffix}: ({', '.join(sorted(wrong))})")
    if conflicts:
        raise bad_request(
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(conflicts)
        )


def _request_group(suffix: str, group: _Group) -> RequestGroup:
    return RequestGroup(
        suffix=suffix,
        resources=group.resources,
        conditions=ProviderConditions(
            required=group.traits.required,
            forbidden=group.traits.forbidden,
            member_of=group.membership.member_of,
            forbidden_aggregates=group.membership.forbidden,
            in_tree=group.in_tree,
            in_subtree=group.in_subtree,
            where=group.where,
            tolerates=group.tolerates,
        ),
    )
