# SPDX-License-Identifier: Apache-2.0
"""Orders of candidates (contract pages 98, 101 and 102, sections 2, 3 and 1)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

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
