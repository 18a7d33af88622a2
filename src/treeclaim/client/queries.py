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
    """Parameters of GET /allocation_candidates.

    Attributes:
        parameters: Names and values, in order; a name may come again.
    """

    parameters: tuple[tuple[str, str], ...]

    @classmethod
    def parsed(cls, query: str) -> "CandidateQuery":
        """Read a query string, with or without `?`."""
        return cls(tuple(parse_qsl(query.removeprefix("?"), keep_blank_values=True)))

    @classmethod
    def of(cls, query: "str | CandidateQuery") -> "CandidateQuery":
        """Read a query string; return a query as it is."""
        return cls.parsed(query) if isinstance(query, str) else query

    def with_parameter(self, name: str, value: str) -> "CandidateQuery":
        """Return the query with one parameter more."""
        return CandidateQuery((*self.parameters, (name, value)))

    def without(self, *names: str) -> "CandidateQuery":
        """Return the query without the parameters of some names, with any suffix."""
        return CandidateQuery(
            tuple(pair for pair in self.parameters if split_name(pair[0])[0] not in names)
        )

    def __str__(self) -> str:
        """Write the query string."""
        return "&".join(f"{name}={escape_url(value, '=:,!_')}" for name, value in self.parameters)


Request = str | CandidateQuery | Sequence[str | CandidateQuery]
"""A query, or alternatives of which the first with a candidate counts."""

_LONGEST_REQUEST = 16_384
"""Bytes of a request that a server keeps (contract page 100, section 4.1)."""


def serialize_request(request: Request) -> list[str] | None:
    """Return a request in the form that is kept; None if it is too long to be kept.

    The holds from which a claim draws are not part of its request.
    """
    alternatives = [request] if isinstance(request, str | CandidateQuery) else request
    kept = [str(CandidateQuery.of(query).without("from_holds")) for query in alternatives]
    return kept if len(orjson.dumps(kept)) <= _LONGEST_REQUEST else None


def query_of(flavor: Flavor) -> CandidateQuery:
    """Return the query for candidates of a flavor (contract page 97, section 4).

    Raises:
        FlavorError: for a key of the forms known here that cannot be read.
    """
    return CandidateQuery(make_query_parameters(flavor))
