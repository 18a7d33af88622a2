# SPDX-License-Identifier: Apache-2.0
"""Why a tree cannot serve a request: the closed list of contract page 97, section 3."""

from enum import StrEnum


class Reason(StrEnum):
    """The reason that rules a tree out; also a label in metrics."""

    NO_INVENTORY = "no_inventory"
    """No provider has any inventory of the class."""
    AMOUNT_UNIT = "amount_unit"
    """min_unit, max_unit or step_size does not allow the amount."""
    CAPACITY = "capacity"
    """Too little is free."""
    CONSUMED = "consumed"
    """Too little is free of what the amount consumes elsewhere (page 102, section 2)."""
    TRAIT_MISSING = "trait_missing"
    TRAIT_FORBIDDEN = "trait_forbidden"
    NOT_MEMBER_OF = "not_member_of"
    FORBIDDEN_MEMBER_OF = "forbidden_member_of"
    NOT_IN_TREE = "not_in_tree"
    NOT_IN_SUBTREE = "not_in_subtree"
    ROOT_TRAIT = "root_trait"
    """The root lacks a required trait, or has a forbidden one."""
    ROOT_MEMBER_OF = "root_member_of"
    """The root is not in a required aggregate, or is in a forbidden one."""
    SAME_SUBTREE = "same_subtree"
    ISOLATE = "isolate"
    COMBINED_CAPACITY = "combined_capacity"
    """Each group fits alone, together they do not."""
    NO_COMMON_TREE = "no_common_tree"
    """Every group has providers, but no tree serves them all."""
    RULE = "rule"
    """A rule of a placing call leaves none of the trees (page 98, section 4)."""
