# SPDX-License-Identifier: Apache-2.0
"""Requests for providers and for allocation candidates, and the order of candidates.

Rules: contract pages 20, section 2; 90, section 4; 98, section 2; 101, section 3; and 102, section 1.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache, reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from treeclaim.model.extension.expressions import Expression

if TYPE_CHECKING:
    from treeclaim.model.extension.planning import Mix

DECIMALS = 12
"""Decimals of a rounded score."""

DEFAULT_CANDIDATES = 1_000
"""Limit of an ordered search if the request has none."""

MOST_CANDIDATES = 10_000
"""Greatest limit of an ordered search."""


class TermName(StrEnum):
    """The criterion of a term of `order_by`."""

    PACK = "pack"
    PACK_PROVIDERS = "pack_providers"
    SPREAD = "spread"
    SPREAD_PROVIDERS = "spread_providers"
    PREFERRED = "preferred"
    NEAR = "near"
    FAR = "far"
    SHUFFLE = "shuffle"
    KEEP = "keep"
    MOST = "most"
    LEAST = "least"


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a score; the relative weight is 1 to 1,000.

    The arguments are resource classes, suffixes of groups, a seed, a mix and a class, or an attribute and a suffix.
    """

    name: TermName
    arguments: tuple[str, ...] = ()
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Preference:
    """A trait that a group prefers, or avoids if it is not wanted; the relative weight is 1 to 1,000."""

    suffix: str
    trait: str
    is_wanted: bool = True
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Order:
    """The order of candidates by descending score.

    Attributes:
        terms: The score is their weighted mean; at least one.
        preferences: The preferences of the term `preferred`.
        mixes: The mixes of the terms `keep`; empty until `with_mixes` adds them.
    """

    terms: tuple[Term, ...]
    preferences: tuple[Preference, ...] = ()
    mixes: tuple["Mix", ...] = ()

    @property
    def mix_names(self) -> frozenset[str]:
        """Return the names of the mixes of the terms `keep`."""
        return frozenset(term.arguments[0] for term in self.terms if term.name is TermName.KEEP)


NO_GROUP = ""
"""Suffix of the unsuffixed group."""


@dataclass(frozen=True, slots=True)
class ProviderConditions:
    """Conditions on one provider, independent of its resources.

    Attributes:
        required: The provider must have a trait of each set.
        forbidden: The provider must have none of these traits.
        member_of: The provider must be in an aggregate of each set; uuids in the client's spelling.
        forbidden_aggregates: The provider must be in none of these aggregates.
        in_tree: The provider must be in a tree of one of these providers; empty for no restriction.
        in_subtree: The provider must be one of these, or a descendant; empty for no restriction.
        not_in_tree: The provider must be in no tree of these providers.
        where: The attributes of the provider must satisfy all these expressions.
        tolerates: Keys of ignored conditions (contract page 102, section 3); None for all.
    """

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: tuple[str, ...] = ()
    in_subtree: tuple[str, ...] = ()
    not_in_tree: tuple[str, ...] = ()
    where: tuple[Expression, ...] = ()
    tolerates: frozenset[str] | None = frozenset()

    def plus(self, other: "ProviderConditions") -> "ProviderConditions":
        """Return the conjunction of two conditions; at most one may name trees, and neither may tolerate all keys."""
        return ProviderConditions(
            required=self.required + other.required,
            forbidden=self.forbidden | other.forbidden,
            member_of=self.member_of + other.member_of,
            forbidden_aggregates=self.forbidden_aggregates | other.forbidden_aggregates,
            in_tree=self.in_tree + other.in_tree,
            in_subtree=self.in_subtree + other.in_subtree,
            not_in_tree=self.not_in_tree + other.not_in_tree,
            where=self.where + other.where,
            tolerates=(self.tolerates or frozenset()) | (other.tolerates or frozenset()),
        )

    @classmethod
    def together(cls, conditions: Iterable["ProviderConditions"]) -> "ProviderConditions":
        """Return the conjunction of conditions; see `plus`."""
        return reduce(ProviderConditions.plus, conditions, cls())

    @property
    def is_empty(self) -> bool:
        """Return whether every provider satisfies the conditions."""
        return not (
            self.required
            or self.forbidden
            or self.member_of
            or self.forbidden_aggregates
            or self.in_tree
            or self.in_subtree
            or self.not_in_tree
            or self.where
        )


@dataclass(frozen=True, slots=True)
class Leniency:
    """Checks of an amount against an inventory that an explanation skips; units are min_unit, max_unit and step_size."""

    ignore_units: bool = False
    ignore_capacity: bool = False
    ignore_consumed_capacity: bool = False


STRICT = Leniency()


@cache
def _compared_values(kind: Any) -> Callable[[object], tuple[Any, ...]]:
    return attrgetter(*(each.name for each in fields(kind) if each.compare))


class ValueObject:
    """Equality by value with a hash that is computed once, since requests are keys of caches.

    The value of a dataclass consists of its compared fields.
    """

    __slots__ = ()

    _value: tuple[Any, ...]
    _hash: int

    def __post_init__(self) -> None:
        """Compute the value and the hash."""
        kind: Any = type(self)
        values = _compared_values(kind)(self)
        self._set_value(
            *[tuple(value.items()) if isinstance(value, dict) else value for value in values]
        )

    def _set_value(self, *value: object) -> None:
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_hash", hash(value))

    def __eq__(self, other: object) -> bool:
        """Compare the values, including the order of resources, which responses show."""
        return self is other or (
            isinstance(other, type(self))
            and self._hash == other._hash
            and self._value == other._value
        )

    def __hash__(self) -> int:
        """Return the computed hash."""
        return self._hash


@dataclass(frozen=True, slots=True, eq=False)
class RequestGroup(ValueObject):
    """A request group: the parameters of a request with the same suffix.

    Attributes:
        suffix: "" for the unsuffixed group.
        resources: Amounts by resource class; empty for a resourceless group.
        conditions: Conditions on the group's providers.
        leniency: Skipped checks by resource class.
    """

    suffix: str = NO_GROUP
    resources: Mapping[str, int] = field(default_factory=dict)
    conditions: ProviderConditions = field(default_factory=ProviderConditions)
    leniency: Mapping[str, Leniency] = field(default_factory=dict)
    _value: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ValueList:
    """A `match` or `distinct` constraint (contract page 102, section 1).

    Attributes:
        name: The attribute, which the providers of all groups must have.
        suffixes: Suffixes of the groups, at least two.
        is_same: Whether all values must be equal; else all must differ.
    """

    name: str
    suffixes: tuple[str, ...]
    is_same: bool


@dataclass(frozen=True, slots=True)
class SubtreeList:
    """A `same_subtree` constraint.

    Attributes:
        inside: Suffixes of groups; the provider of one of them is an ancestor of, or the same as, those of all others.
        outside: Suffixes of groups; their providers are not below that ancestor (page 97, section 2).
    """

    inside: tuple[str, ...]
    outside: tuple[str, ...] = ()


class SplitPolicy(StrEnum):
    """The division of an amount over a set of providers (page 97, section 2)."""

    PACK = "pack"
    EVEN = "even"


@dataclass(frozen=True, slots=True, eq=False)
class CandidateRequest(ValueObject):
    """A validated query for allocation candidates. Requests are equal by value.

    Attributes:
        groups: All request groups, in the order of the query.
        root: Conditions on the anchor root.
        isolated: Suffixes of groups that share no provider with another suffixed group.
        can_split: Classes of the unsuffixed group that several providers may supply together.
        sums_groups: False to check each group as if the others used nothing of a shared provider.
        limit: Most candidates; None for all.
        nested: False below 1.29: a candidate has at most one provider of each tree.
        order: The order of the candidates; None for the canonical order.
        from_holds: Uuids of holds; their remaining amounts count as free (contract page 100, section 2).
    """

    groups: tuple[RequestGroup, ...]
    root: ProviderConditions = field(default_factory=ProviderConditions)
    same_subtree: tuple[SubtreeList, ...] = ()
    isolated: frozenset[str] = frozenset()
    values: tuple[ValueList, ...] = ()
    can_split: frozenset[str] = frozenset()
    split_policy: SplitPolicy = SplitPolicy.PACK
    sums_groups: bool = True
    limit: int | None = None
    nested: bool = True
    order: Order | None = None
    from_holds: tuple[str, ...] = ()
    _value: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def without_mixes(self) -> "CandidateRequest":
        """Return the request without the mixes of its order."""
        if self.order is None or not self.order.mixes:
            return self
        return replace(self, order=replace(self.order, mixes=()))

    @property
    def tolerated(self) -> frozenset[str]:
        """Return the keys of the conditions that any group tolerates."""
        return frozenset().union(*(group.conditions.tolerates or () for group in self.groups))

    @property
    def classes(self) -> frozenset[str]:
        """Return the names of the classes whose free amounts affect the result."""
        mixes = () if self.order is None else self.order.mixes
        class_names = (name for group in self.groups for name in group.resources)
        return frozenset(class_names).union(*(mix.classes for mix in mixes))


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The operator's options for every search (contract page 90, section 6).

    Attributes:
        maximum: Most candidates of a request; None, here and below, for no limit.
        breadth_first: Visit the trees in turn instead of one after the other.
        randomize: Return a random sample under a limit, else a shuffled list.
    """

    maximum: int | None = None
    breadth_first: bool = False
    randomize: bool = False
    seconds: float | None = None
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class BodyForm:
    """The form of a response, by microversion (contract page 90, section 5).

    Attributes:
        list_allocations: Below 1.12: allocations are a list, not an object.
        mappings: From 1.34: candidates contain mappings.
        traits: From 1.17: summaries contain traits.
        all_classes: From 1.27: summaries contain all classes, not only the requested ones.
        nested: From 1.29: summaries contain whole trees, with parent and root.
    """

    list_allocations: bool = False
    mappings: bool = True
    traits: bool = True
    all_classes: bool = True
    nested: bool = True


@dataclass(frozen=True, slots=True)
class ProviderQuery:
    """A query for a list or a page of providers (contract pages 20, section 2, and 99, section 1).

    A provider itself must satisfy all filters, and have the resources free; None matches any name or uuid.
    """

    name: str | None = None
    uuids: frozenset[str] | None = None
    conditions: ProviderConditions = field(default_factory=ProviderConditions)
    resources: Mapping[str, int] = field(default_factory=dict)
