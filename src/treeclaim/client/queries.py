# SPDX-License-Identifier: Apache-2.0
"""Queries for candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

import orjson

from treeclaim.client.session import escape_url
from treeclaim.model.flavors import Flavor, make_query_parameters
from treeclaim.model.query.parameters import split_name


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """Names and values of the parameters of GET /allocation_candidates, in order; names may be repeated."""

    parameters: tuple[tuple[str, str], ...]

    @classmethod
    def parsed(cls, query: str) -> "CandidateQuery":
        """Parse a query string, with or without `?`."""
        return cls(tuple(parse_qsl(query.removeprefix("?"), keep_blank_values=True)))

    @classmethod
    def of(cls, query: "str | CandidateQuery") -> "CandidateQuery":
        """Convert a query string; return a query unchanged."""
        return cls.parsed(query) if isinstance(query, str) else query

    def with_parameter(self, name: str, value: str) -> "CandidateQuery":
        """Return the query with a further parameter."""
        return CandidateQuery((*self.parameters, (name, value)))

    def without(self, *names: str) -> "CandidateQuery":
        """Return the query without the named parameters, whatever their suffixes."""
        return CandidateQuery(
            tuple(pair for pair in self.parameters if split_name(pair[0])[0] not in names)
        )

    def __str__(self) -> str:
        """Return the query string."""
        return "&".join(f"{name}={escape_url(value, '=:,!_')}" for name, value in self.parameters)


Request = str | CandidateQuery | Sequence[str | CandidateQuery]
"""A query, or alternatives in order of preference."""

_LONGEST_REQUEST = 16_384
"""Most bytes of a stored request (contract page 100, section 4.1)."""


def serialize_request(request: Request) -> list[str] | None:
    """Return a request without `from_holds` for storing; None if it is too long."""
    alternatives = [request] if isinstance(request, str | CandidateQuery) else request
    queries = [str(CandidateQuery.of(query).without("from_holds")) for query in alternatives]
    return queries if len(orjson.dumps(queries)) <= _LONGEST_REQUEST else None


def query_of(flavor: Flavor) -> CandidateQuery:
    """Return the query of a flavor (contract page 97, section 4); raise FlavorError for an invalid key."""
    return CandidateQuery(make_query_parameters(flavor))
