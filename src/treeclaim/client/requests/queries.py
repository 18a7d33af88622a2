# SPDX-License-Identifier: Apache-2.0
"""Queries for candidates, with the versions that their parameters need."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from treeclaim.client.transport import escaped
from treeclaim.client.versions import LATEST_MINOR, Need
from treeclaim.model.microversions import ExtensionFeature, Feature
from treeclaim.model.query_parameters import Since, parameter_named, split_name


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
        return "&".join(f"{name}={escaped(value, '=:,!_')}" for name, value in self.parameters)

    def needs(self) -> Sequence[Need]:
        """Return what the server must have."""
        needs = [need for name, value in self.parameters for need in _needs_of(name, value)]
        counts = Counter(name for name, _ in self.parameters)
        needs += [need for name, count in counts.items() if count > 1 for need in _repeated(name)]
        suffixed = {
            suffix for name, _ in self.parameters if (suffix := split_name(name)[1]) is not None
        }
        if len(suffixed - {""}) > 1 and "group_policy" not in dict(self.parameters):
            needs.append(
                Need(
                    "several groups without group_policy",
                    LATEST_MINOR,
                    extension=ExtensionFeature.MORE_CONSTRAINTS,
                )
            )
        return needs


def _needs_of(name: str, value: str) -> Iterator[Need]:
    parameter = parameter_named(name)
    if parameter is None:
        return
    yield _need(name, parameter.since)
    suffix = split_name(name)[1]
    if suffix and isinstance(parameter.since, Feature):
        is_numbered = re.fullmatch("[1-9][0-9]*", suffix)
        since = Feature.GRANULAR_GROUPS if is_numbered else Feature.NAMED_GROUPS
        yield Need(f"{name} (a group's suffix)", since)
    for form in parameter.later_forms:
        if form.has(value):
            yield _need(f"{name} {form.words}" if form.words else f"{name}={value}", form.since)


def _repeated(name: str) -> Iterator[Need]:
    parameter = parameter_named(name)
    if parameter is not None and parameter.repeated_since is not None:
        yield _need(f"{name} more than once", parameter.repeated_since)


def _need(words: str, since: Since) -> Need:
    if isinstance(since, ExtensionFeature):
        return Need(words, LATEST_MINOR, extension=since)
    return Need(words, since)
