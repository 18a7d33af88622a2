# SPDX-License-Identifier: Apache-2.0
"""The parameters of a query for allocation candidates, each declared once.

Schemas, the API description, the client's queries, flavors, the command line and the pages follow
from this table (contract page 90, section 1; page 97, section 2; page 98, section 2; page 100,
section 2; page 102, section 3). `treeclaim.model.query.parser` implements the meaning of each parameter.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from treeclaim.model.microversions import Feature


class Grammar(Enum):
    """Forms of values."""

    AMOUNTS = auto()
    """`CLASS:AMOUNT,…`."""
    TRAITS = auto()
    """`TRAIT,!TRAIT,…`."""
    TRAITS_OR_ANY = auto()
    """`TRAIT,!TRAIT,…`, or `in:TRAIT,…`."""
    PREFERENCES = auto()
    """`TRAIT[*WEIGHT],!TRAIT,…`."""
    AGGREGATES = auto()
    """`UUID` or `in:UUID,…`, after an optional `!`."""
    TREE = auto()
    """The uuid of a provider."""
    TREES = auto()
    """`UUID` or `in:UUID,…`, of providers."""
    TREES_OR_NOT = auto()
    """A list of names after an optional `!`."""
    UUIDS = auto()
    """`UUID,…`, of anything but providers."""
    CLASSES = auto()
    """`CLASS,…`."""
    KEYS = auto()
    """`KEY,…`, of conditions."""
    SUFFIXES = auto()
    """`SUFFIX,…`."""
    SUFFIXES_OR_NOT = auto()
    """`SUFFIX,!SUFFIX,…`."""
    EXPRESSION = auto()
    """An expression about attributes: `mem_gib >= 80 and not ecc`."""
    VALUE_LIST = auto()
    """`NAME:SUFFIX:SUFFIX…`; the name is an attribute's."""
    TERMS = auto()
    """`NAME[:ARGUMENT…][*WEIGHT],…`."""
    CHOICE = auto()
    """A word of a list."""
    NUMBER = auto()
    """A positive number."""

    @property
    def names_providers(self) -> bool:
        """Return whether a value has uuids of providers, for which people may write names."""
        return self in (Grammar.TREE, Grammar.TREES, Grammar.TREES_OR_NOT)


class Repetition(Enum):
    """The meaning of a repeated parameter."""

    REFUSED = auto()
    FIRST_COUNTS = auto()
    ALL_COUNT = auto()


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter of a query for allocation candidates.

    Attributes:
        name: Without a suffix.
        since: The feature that added it.
        grammar: Form of its value at the newest microversion.
        help: One line of help.
        of_group: Whether it belongs to a request group, so that its name may have a suffix.
        repeated: Meaning of a repetition.
        repeated_since: The feature that allowed repetitions; None if they were always allowed, or never.
        extended_grammar: Form of its value in the extension; None for the same.
        choices: Possible values, for `Grammar.CHOICE`.
        flavor_items: In a flavor, an extra spec is one item of a value, as in `resources1:VGPU=1`,
            with this word before the suffix; None where the extra spec has the parameter's name.
        flavor_numbers: Whether an extra spec may end in `:N`, N any digits, so that a flavor has it
            more than once.
    """

    name: str
    since: Feature
    grammar: Grammar
    help: str
    of_group: bool = False
    repeated: Repetition = Repetition.ALL_COUNT
    repeated_since: Feature | None = None
    extended_grammar: Grammar | None = None
    choices: tuple[str, ...] = ()
    flavor_items: str | None = None
    flavor_numbers: bool = False

    @property
    def newest_grammar(self) -> Grammar:
        """Return how its value is written with the extension."""
        return self.extended_grammar or self.grammar


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
        repeated_since=Feature.ANY_TRAITS,
        flavor_items="trait",
    ),
    QueryParameter(
        "member_of",
        Feature.CANDIDATE_MEMBER_OF,
        Grammar.AGGREGATES,
        "aggregates that a provider is in; ! for forbidden",
        of_group=True,
        repeated_since=Feature.REPEATED_MEMBER_OF,
    ),
    QueryParameter(
        "in_tree",
        Feature.CANDIDATE_IN_TREE,
        Grammar.TREE,
        "uuid of a provider of the tree to use",
        of_group=True,
        extended_grammar=Grammar.TREES,
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
        repeated=Repetition.REFUSED,
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
        repeated_since=_EXTENSION,
    ),
    QueryParameter(
        "limit",
        Feature.CANDIDATE_LIMIT,
        Grammar.NUMBER,
        "most candidates",
        repeated=Repetition.FIRST_COUNTS,
    ),
    QueryParameter(
        "group_policy",
        Feature.GRANULAR_GROUPS,
        Grammar.CHOICE,
        "whether groups may share a provider",
        repeated=Repetition.FIRST_COUNTS,
        choices=("none", "isolate"),
    ),
    QueryParameter(
        "root_required",
        Feature.ROOT_REQUIRED,
        Grammar.TRAITS,
        "traits of the root; ! for forbidden",
        repeated_since=_EXTENSION,
        extended_grammar=Grammar.TRAITS_OR_ANY,
    ),
    QueryParameter(
        "same_subtree",
        Feature.SAME_SUBTREE,
        Grammar.SUFFIXES,
        "suffixes of groups that must be below one provider: _CPU,_GPU",
        extended_grammar=Grammar.SUFFIXES_OR_NOT,
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
        repeated=Repetition.FIRST_COUNTS,
        choices=("pack", "even"),
    ),
    QueryParameter(
        "order_by",
        _EXTENSION,
        Grammar.TERMS,
        "pack, spread, preferred, near:_A:_B, keep:MIX:CLASS …",
        repeated=Repetition.REFUSED,
    ),
    QueryParameter(
        "root_in_tree",
        _EXTENSION,
        Grammar.TREES_OR_NOT,
        "uuid of a host to use; ! to leave out",
        repeated=Repetition.REFUSED,
    ),
    QueryParameter(
        "from_holds",
        _EXTENSION,
        Grammar.UUIDS,
        "holds whose room counts as free",
        repeated=Repetition.REFUSED,
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
"""The parameters by their names without suffix."""

_GROUPED = re.compile(
    f"({'|'.join(sorted((each.name for each in QUERY_PARAMETERS if each.of_group), reverse=True))})"
    "(.*)",
    re.DOTALL,
)


def split_name(name: str) -> tuple[str, str | None]:
    """Return a parameter's name without its suffix, and the suffix; None where it can have none."""
    match = _GROUPED.fullmatch(name)
    return (name, None) if match is None else (match[1], match[2])


def find_parameter(name: str) -> QueryParameter | None:
    """Return the parameter with a name, which may have a suffix; None if there is none."""
    return BY_NAME.get(split_name(name)[0])
