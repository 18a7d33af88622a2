# SPDX-License-Identifier: Apache-2.0
"""The parameters of a query for allocation candidates, each declared once.

Schemas, the API description, flavors, the client and the command line read this table. `parser` implements the
parameters (contract page 90, section 1; pages 97, 98 and 100, section 2; page 102, section 3).
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from treeclaim.model.microversions import Feature


class Grammar(Enum):
    """Forms of values at the newest microversion with the extension."""

    AMOUNTS = auto()
    """`CLASS:AMOUNT,…`."""
    TRAITS_OR_ANY = auto()
    """`TRAIT,!TRAIT,…` or `in:TRAIT,…`."""
    PREFERENCES = auto()
    """`TRAIT[*WEIGHT],!TRAIT,…`."""
    AGGREGATES = auto()
    """`UUID` or `in:UUID,…`, after an optional `!`."""
    TREES = auto()
    """`UUID` or `in:UUID,…` of providers."""
    TREES_OR_NOT = auto()
    """`UUID` or `in:UUID,…` of providers, after an optional `!`."""
    UUIDS = auto()
    """`UUID,…` of holds."""
    CLASSES = auto()
    """`CLASS,…`."""
    KEYS = auto()
    """`KEY,…` of conditions."""
    SUFFIXES = auto()
    """`SUFFIX,…`."""
    SUFFIXES_OR_NOT = auto()
    """`SUFFIX,!SUFFIX,…`."""
    EXPRESSION = auto()
    """A condition on attributes, such as `mem_gib >= 80 and not ecc`."""
    VALUE_LIST = auto()
    """`ATTRIBUTE:SUFFIX:SUFFIX…`."""
    TERMS = auto()
    """`NAME[:ARGUMENT…][*WEIGHT],…`."""
    CHOICE = auto()
    """One of `choices`."""
    NUMBER = auto()
    """A positive number."""

    @property
    def names_providers(self) -> bool:
        """Return whether values contain provider uuids, which people may replace by names."""
        return self in (Grammar.TREES, Grammar.TREES_OR_NOT)


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter of a query for allocation candidates.

    Attributes:
        name: The name without a suffix.
        since: The feature that added the parameter.
        of_group: Whether the parameter belongs to a request group; its name may then have a suffix.
        may_repeat: Whether a request with the extension may repeat the parameter.
        is_list: Whether the API description shows the parameter as a list of values.
        choices: The values of `Grammar.CHOICE`.
        flavor_items: The word that begins an extra spec for one item of the value, such as `resources1:VGPU=1`; None
            if the extra spec has the parameter's name.
        flavor_numbers: Whether a flavor may repeat the parameter as extra specs `NAME:N`, N any digits.
    """

    name: str
    since: Feature
    grammar: Grammar
    help: str
    of_group: bool = False
    may_repeat: bool = True
    is_list: bool = False
    choices: tuple[str, ...] = ()
    flavor_items: str | None = None
    flavor_numbers: bool = False


_EXTENSION = Feature.EXTENSION

QUERY_PARAMETERS = (
    QueryParameter(
        "resources",
        Feature.ALLOCATION_CANDIDATES,
        Grammar.AMOUNTS,
        "how much of which classes",
        of_group=True,
        flavor_items="resources",
    ),
    QueryParameter(
        "required",
        Feature.CANDIDATE_TRAITS,
        Grammar.TRAITS_OR_ANY,
        "traits that a provider has; ! for forbidden",
        of_group=True,
        is_list=True,
        flavor_items="trait",
    ),
    QueryParameter(
        "member_of",
        Feature.CANDIDATE_MEMBER_OF,
        Grammar.AGGREGATES,
        "aggregates that a provider is in; ! for forbidden",
        of_group=True,
        is_list=True,
    ),
    QueryParameter(
        "in_tree",
        Feature.CANDIDATE_IN_TREE,
        Grammar.TREES,
        "uuid of a provider of the tree to use",
        of_group=True,
    ),
    QueryParameter(
        "in_subtree",
        _EXTENSION,
        Grammar.TREES,
        "uuid of a provider: that one, or any below",
        of_group=True,
    ),
    QueryParameter(
        "preferred",
        _EXTENSION,
        Grammar.PREFERENCES,
        "traits that a provider had better have; ! to avoid",
        of_group=True,
        may_repeat=False,
    ),
    QueryParameter(
        "where",
        _EXTENSION,
        Grammar.EXPRESSION,
        "what attributes of a provider satisfy: mem_gib >= 80 and not ecc",
        of_group=True,
        flavor_numbers=True,
    ),
    QueryParameter(
        "tolerates",
        _EXTENSION,
        Grammar.KEYS,
        "keys of conditions that do not count",
        of_group=True,
        is_list=True,
    ),
    QueryParameter(
        "limit",
        Feature.CANDIDATE_LIMIT,
        Grammar.NUMBER,
        "most candidates",
    ),
    QueryParameter(
        "group_policy",
        Feature.GRANULAR_GROUPS,
        Grammar.CHOICE,
        "whether groups may share a provider",
        choices=("none", "isolate"),
    ),
    QueryParameter(
        "root_required",
        Feature.ROOT_REQUIRED,
        Grammar.TRAITS_OR_ANY,
        "traits of the root; ! for forbidden",
        is_list=True,
    ),
    QueryParameter(
        "same_subtree",
        Feature.SAME_SUBTREE,
        Grammar.SUFFIXES_OR_NOT,
        "suffixes of groups that must be below one provider: _CPU,_GPU",
    ),
    QueryParameter("root_member_of", _EXTENSION, Grammar.AGGREGATES, "aggregates of the root"),
    QueryParameter(
        "isolate", _EXTENSION, Grammar.SUFFIXES, "suffixes of groups that share no provider"
    ),
    QueryParameter(
        "can_split",
        _EXTENSION,
        Grammar.CLASSES,
        "classes that several providers may give together",
    ),
    QueryParameter(
        "split_policy",
        _EXTENSION,
        Grammar.CHOICE,
        "how an amount is divided over providers",
        choices=("pack", "even"),
    ),
    QueryParameter(
        "order_by",
        _EXTENSION,
        Grammar.TERMS,
        "pack, spread, preferred, near:_A:_B, keep:MIX:CLASS …",
        may_repeat=False,
    ),
    QueryParameter(
        "root_in_tree",
        _EXTENSION,
        Grammar.TREES_OR_NOT,
        "uuid of a host to use; ! to leave out",
        may_repeat=False,
    ),
    QueryParameter(
        "from_holds",
        _EXTENSION,
        Grammar.UUIDS,
        "holds whose room counts as free",
        may_repeat=False,
    ),
    QueryParameter(
        "root_where",
        _EXTENSION,
        Grammar.EXPRESSION,
        "what attributes of the root satisfy",
    ),
    QueryParameter(
        "match",
        _EXTENSION,
        Grammar.VALUE_LIST,
        "an attribute that groups have with the same value: numa_node:_GPU:_NIC",
        flavor_numbers=True,
    ),
    QueryParameter(
        "distinct",
        _EXTENSION,
        Grammar.VALUE_LIST,
        "an attribute that groups have with different values: rack:_A:_B",
        flavor_numbers=True,
    ),
)
"""All parameters; those of groups first."""

BY_NAME = {parameter.name: parameter for parameter in QUERY_PARAMETERS}

_GROUPED = re.compile(
    f"({'|'.join(sorted((each.name for each in QUERY_PARAMETERS if each.of_group), reverse=True))})"
    "(.*)",
    re.DOTALL,
)


def split_name(name: str) -> tuple[str, str | None]:
    """Split a parameter's name from its suffix, which is None if the parameter belongs to no group."""
    match = _GROUPED.fullmatch(name)
    return (name, None) if match is None else (match[1], match[2])


def find_parameter(name: str) -> QueryParameter | None:
    """Return the parameter of a name with or without a suffix; None if it is unknown."""
    return BY_NAME.get(split_name(name)[0])
