# SPDX-License-Identifier: Apache-2.0
"""Requests for providers, and for combinations of them, with the order of these.

The terms are those of contract pages 20, section 2; 90, section 4; 98, section 2; 101, section 3; and 102, section 1.
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
"""Decimals to which a score is rounded."""

DEFAULT_CANDIDATES = 1_000
"""Candidates of an ordered search without a limit."""

MOST_CANDIDATES = 10_000
"""The greatest limit of an ordered search."""


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
    """A term of a score.

    Attributes:
        name: The measure.
        arguments: Resource classes, suffixes of groups, a seed, a mix and a class, or an attribute and
            a suffix; depends on the term.
        weight: Its weight relative to the others, 1 to 1,000.
    """

    name: TermName
    arguments: tuple[str, ...] = ()
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Preference:
    """A trait that a group prefers, or prefers to avoid.

    Attributes:
        suffix: The group.
        trait: Name of the trait.
        is_wanted: False for a trait to avoid.
        weight: How much it counts beside the other preferences, 1 to 1,000.
    """

    suffix: str
    trait: str
    is_wanted: bool = True
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Order:
    """The order of the candidates of a request: by descending score.

    Attributes:
        terms: The terms, of which the score is the weighted mean; at least one.
        preferences: Preferences for the term `preferred`.
        mixes: The mixes that the terms `keep` name; none until they are read.
    """

    terms: tuple[Term, ...]
    preferences: tuple[Preference, ...] = ()
    mixes: tuple["Mix", ...] = ()

    @property
    def mix_names(self) -> frozenset[str]:
        """Return the names of the mixes in the terms `keep`."""
        return frozenset(term.arguments[0] for term in self.terms if term.name is TermName.KEEP)


NO_GROUP = ""
"""Suffix of the unsuffixed group."""


@dataclass(frozen=True, slots=True)
class ProviderConditions:
    """Conditions on one provider, independent of the resources it supplies.

    Attributes:
        required: Each set needs at least one of its traits; a plain trait is a set of one.
        forbidden: Traits that rule a provider out.
        member_of: Each set needs at least one of its aggregates (uuids, literally).
        forbidden_aggregates: Aggregates that rule a provider out.
        in_tree: Each the uuid of any provider of a tree; one of these trees is wanted. Empty for
            no restriction.
        in_subtree: Uuids of providers; what is wanted is one of them or a descendant of one.
            Empty for no restriction.
        not_in_tree: Each the uuid of any provider of a tree that is not wanted.
        where: Expressions about its attributes, all of which it satisfies.
        tolerates: Keys of conditions that do not count (contract page 102, section 3); None for all.
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
        """Return these conditions with more of them; no two may name trees, or tolerate all keys."""
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
    def together(cls, several: Iterable["ProviderConditions"]) -> "ProviderConditions":
        """Return all of some conditions as one; see `plus`."""
        return reduce(ProviderConditions.plus, several, cls())

    @property
    def is_empty(self) -> bool:
        """Return whether every provider that gives something meets the conditions."""
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
    """Checks to leave out when an amount is compared with an inventory, to explain a search.

    Attributes:
        ignore_units: Skip the checks of min_unit, max_unit and step_size.
        ignore_capacity: Skip the check of free capacity.
        ignore_consumed_capacity: Skip the check of free capacity of consumed inventories.
    """

    ignore_units: bool = False
    ignore_capacity: bool = False
    ignore_consumed_capacity: bool = False


STRICT = Leniency()


@cache
def _compared_values(kind: Any) -> Callable[[object], tuple[Any, ...]]:
    """Return a function that reads the fields by which instances of a dataclass are compared."""
    return attrgetter(*(each.name for each in fields(kind) if each.compare))


class ValueObject:
    """Equal by value, with a hash that is computed once: requests are keys of caches.

    The value of a dataclass is that of its fields, but for those that are not compared.
    """

    __slots__ = ()

    _value: tuple[Any, ...]
    _hash: int

    def __post_init__(self) -> None:
        """Compute the value of a dataclass."""
        kind: Any = type(self)
        values = _compared_values(kind)(self)
        self._set_value(
            *[tuple(value.items()) if isinstance(value, dict) else value for value in values]
        )

    def _set_value(self, *value: object) -> None:
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_hash", hash(value))

    def __eq__(self, other: object) -> bool:
        """Compare; the order of resources counts, as answers show it."""
        return self is other or (
            isinstance(other, type(self))
            and self._hash == other._hash
            and self._value == other._value
        )

    def __hash__(self) -> int:
        """Return the hash of the value."""
        return self._hash


@dataclass(frozen=True, slots=True, eq=False)
class RequestGroup(ValueObject):
    """A group of `resources`, `required`, `member_of` and `in_tree` of a request.

    Attributes:
        suffix: Suffix of the parameters' names; "" for the unsuffixed group.
        resources: Amount of each resource class, by name; empty for a resourceless group.
        conditions: Conditions of its providers.
        leniency: By class name; classes that are not named are judged strictly.
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
        name: The name of an attribute, which all of the providers have.
        suffixes: The suffixes of the groups, two or more different ones.
        is_same: Whether all have the same value of it; else each has another one.
    """

    name: str
    suffixes: tuple[str, ...]
    is_same: bool


@dataclass(frozen=True, slots=True)
class SubtreeList:
    """A `same_subtree` constraint.

    Attributes:
        inside: Suffixes of groups of which one's provider is above, or is, those of all.
        outside: Suffixes of groups whose providers are not below that one (page 97, section 2).
    """

    inside: tuple[str, ...]
    outside: tuple[str, ...] = ()


class SplitPolicy(StrEnum):
    """The division of an amount over a chosen set of providers (page 97, section 2)."""

    PACK = "pack"
    EVEN = "even"


@dataclass(frozen=True, slots=True, eq=False)
class CandidateRequest(ValueObject):
    """A validated query for allocation candidates. Requests are equal by value.

    Attributes:
        groups: All request groups, in the order of the query.
        root: Conditions of the anchor root.
        same_subtree: Sets of groups whose providers share a subtree.
        isolated: Suffixes of groups whose provider serves no other suffixed group.
        values: Groups whose providers must have equal, or different, values of an attribute.
        can_split: Classes of the unsuffixed group that several providers may give together.
        split_policy: How a split distributes the amount.
        sums_groups: False to judge each group as if the others used nothing of the provider.
        limit: Most candidates wanted, None for all.
        nested: False below 1.29: no two providers of one tree in a candidate.
        order: Scores by which the candidates are ordered; None for the canonical order.
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
        """Return the request without the mixes that its order names."""
        if self.order is None or not self.order.mixes:
            return self
        return replace(self, order=replace(self.order, mixes=()))

    @property
    def tolerated(self) -> frozenset[str]:
        """Return the keys of the conditions that do not count for some group."""
        return frozenset().union(*(group.conditions.tolerates or () for group in self.groups))

    @property
    def classes(self) -> frozenset[str]:
        """Return the names of the classes on which it depends how much is free of them."""
        mixes = () if self.order is None else self.order.mixes
        class_names = (name for group in self.groups for name in group.resources)
        return frozenset(class_names).union(*(mix.classes for mix in mixes))


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The operator's options for every search (contract page 90, section 6).

    Attributes:
        maximum: Most candidates generated for one request; None for no cap.
        breadth_first: Visit the trees in turn instead of one after the other.
        randomize: Return a random sample under a limit, else a shuffled list.
        seconds: How long a search may take; None for as long as it likes.
        most_bytes: How much memory a search may hold; None for as much as it likes.
    """

    maximum: int | None = None
    breadth_first: bool = False
    randomize: bool = False
    seconds: float | None = None
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class BodyForm:
    """The form of an answer, which depends on the microversion (contract page 90, section 5).

    Attributes:
        list_allocations: True below 1.12: allocations are a list, not an object.
        mappings: True from 1.34.
        traits: True from 1.17: summaries name the traits.
        all_classes: True from 1.27: summaries show every class, not the requested ones only.
        nested: True from 1.29: summaries show whole trees, with parent and root.
    """

    list_allocations: bool = False
    mappings: bool = True
    traits: bool = True
    all_classes: bool = True
    nested: bool = True


@dataclass(frozen=True, slots=True)
class ProviderQuery:
    """A query for a list or a page of providers (contract pages 20, section 2, and 99, section 1).

    All filters combine.

    Attributes:
        name: Exact name; None for any.
        uuids: Exact uuids, of which one is wanted; None for any.
        conditions: Traits, aggregates and tree; only the provider's own count.
        resources: Amounts that the provider alone must have free.
    """

    name: str | None = None
    uuids: frozenset[str] | None = None
    conditions: ProviderConditions = field(default_factory=ProviderConditions)
    resources: Mapping[str, int] = field(default_factory=dict)
