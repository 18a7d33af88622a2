# SPDX-License-Identifier: Apache-2.0
"""Queries for candidates, with the versions that their parameters need."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

from treeclaim.client.versions import LATEST_MINOR, Need
from treeclaim.model.microversions import ExtensionFeature, Feature

_GROUPED = re.compile(
    r"(resources|required|member_of|in_tree|in_subtree|preferred)(.*)", re.DOTALL
)
_SINCE = {
    "resources": Feature.ALLOCATION_CANDIDATES,
    "limit": Feature.CANDIDATE_LIMIT,
    "required": Feature.CANDIDATE_TRAITS,
    "member_of": Feature.CANDIDATE_MEMBER_OF,
    "group_policy": Feature.GRANULAR_GROUPS,
    "in_tree": Feature.CANDIDATE_IN_TREE,
    "root_required": Feature.ROOT_REQUIRED,
    "same_subtree": Feature.SAME_SUBTREE,
}
"""What brought each parameter (contract page 90, section 1)."""

_EXTENSION = ("root_member_of", "isolate", "in_subtree", "can_split", "split_policy")

_ORDER = ("order_by", "preferred", "root_in_tree")
"""What version 1.1 of the extension brought (contract page 98, section 2)."""

PARAMETERS = tuple(dict.fromkeys((*_SINCE, "group_policy", *_EXTENSION, *_ORDER)))
"""Names of all parameters, those of groups without a suffix."""


def is_parameter(name: str) -> bool:
    """Tell whether a search has a parameter of that name; that of a group may have a suffix."""
    return _split(name)[0] in PARAMETERS


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """Parameters of GET /allocation_candidates.

    Attributes:
        parameters: Names and values, in order; a name may come again.
    """

    parameters: tuple[tuple[str, str], ...]

    @classmethod
    def parsed(cls, query: str) -> "CandidateQuery":
        """Read a query string."""
        return cls(tuple(parse_qsl(query, keep_blank_values=True)))

    def with_parameter(self, name: str, value: str) -> "CandidateQuery":
        """Return the query with one parameter more."""
        return CandidateQuery((*self.parameters, (name, value)))

    def __str__(self) -> str:
        """Write the query string."""
        return "&".join(f"{name}={quote(value, safe='=:,!_')}" for name, value in self.parameters)

    def needs(self) -> Sequence[Need]:
        """Return what the server must have."""
        found = [need for name, value in self.parameters for need in _needs_of(name, value)]
        suffixed = {
            suffix for name, _ in self.parameters if (suffix := _split(name)[1]) is not None
        }
        if len(suffixed - {""}) > 1 and "group_policy" not in dict(self.parameters):
            found.append(
                Need(
                    "several groups without group_policy",
                    LATEST_MINOR,
                    extension=ExtensionFeature.MORE_CONSTRAINTS,
                )
            )
        return found


def _split(name: str) -> tuple[str, str | None]:
    """Return a parameter's name without its suffix, and the suffix if it can have one."""
    match = _GROUPED.fullmatch(name)
    return (name, None) if match is None else (match[1], match[2])


def _needs_of(name: str, value: str) -> Iterator[Need]:
    base, suffix = _split(name)
    if base in _EXTENSION:
        yield Need(name, LATEST_MINOR, extension=ExtensionFeature.MORE_CONSTRAINTS)
        return
    if base in _ORDER:
        yield Need(name, LATEST_MINOR, extension=ExtensionFeature.ORDER_AND_REPORTS)
        return
    if base in _SINCE:
        yield Need(name, _SINCE[base])
    if suffix:
        is_numbered = re.fullmatch("[1-9][0-9]*", suffix)
        since = Feature.GRANULAR_GROUPS if is_numbered else Feature.NAMED_GROUPS
        yield Need(f"{name} (a group's suffix)", since)
    yield from _needs_of_value(name, base, value)


def _needs_of_value(name: str, base: str, value: str) -> Iterator[Need]:
    if base in ("required", "root_required") and "!" in value:
        yield Need(f"{name} with a forbidden trait", Feature.FORBIDDEN_TRAITS)
    if base == "required" and value.startswith("in:"):
        yield Need(f"{name} with any of several traits", Feature.ANY_TRAITS)
    if base == "member_of" and value.startswith("!"):
        yield Need(f"{name} with a forbidden aggregate", Feature.FORBIDDEN_AGGREGATES)
    is_extended = (base in ("root_required", "in_tree") and value.startswith("in:")) or (
        base == "same_subtree" and "!" in value
    )
    if is_extended:
        yield Need(f"{name}={value}", LATEST_MINOR, extension=ExtensionFeature.MORE_CONSTRAINTS)
