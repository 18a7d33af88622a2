# SPDX-License-Identifier: Apache-2.0
"""Queries in bodies: read once each, and refused with the place where they stand (contract page 98).

Every function raises ApiError, a 400 that says what is wrong, and where.
"""

from collections.abc import Iterable, Mapping

from treeclaim.api.protocol.errors import BAD_VALUE, api_error, bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.resources.candidates.mixes import Mixes
from treeclaim.api.resources.candidates.parameters import request_of
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.planning import Mix
from treeclaim.model.query.errors import InvalidQueryError, QueryError
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import Arrival
from treeclaim.store.database.transactions import chunks

_LONGEST_QUERY = 256 * 1024
"""Characters of a query in a body: four times the longest address."""

_MOST_GROUPS = 65_536
"""Request groups of all different queries of a call together: those of 128 queries that have the most by
default. In the form in which the search wants them they take a hundred megabytes."""

_NAMES_AT_ONCE = 500
"""Queries whose names are looked for in one turn at the Forest: a few milliseconds."""


class Queries:
    """Reads the queries of one call, each text once, and within the time that a search has."""

    def __init__(self, call: Call, arrival: Arrival, texts: Iterable[str]) -> None:
        """Look how many groups there are altogether, before any query is read.

        Args:
            call: The call.
            arrival: When it came, and how long it may take.
            texts: All queries.

        Raises:
            ApiError: 400.
        """
        _require_few_groups(sum(f"&{text}".count("&resources") for text in set(texts)))
        self._version = call.version
        self._most_groups = call.services.options.max_request_groups
        self._arrival = arrival
        self._known: dict[str, CandidateRequest] = {}
        self._mixes = Mixes(call, arrival.check)
        self._groups = 0

    def at(self, where: str, query: str) -> CandidateRequest:
        """Read a query; an error in it begins with where it stands.

        Raises:
            ApiError: 400.
            SearchGivenUpError: if the time of the call is over.
            ClientGoneError: if its client has hung up.
        """
        self._arrival.check()
        cached_request = self._known.get(query)
        if cached_request is not None:
            return cached_request
        if len(query) > _LONGEST_QUERY:
            raise bad_request(f"{where}: a query is longer than {_LONGEST_QUERY} characters.")
        try:
            request = request_of(query, self._version, self._most_groups)
            request = self._mixes.in_order_of(request)
        except InvalidQueryError as error:
            raise api_error(error, f"{where}: {error}") from error
        # Names may be written in ways that are not seen without reading.
        self._groups += len(request.groups)
        _require_few_groups(self._groups)
        self._known[query] = request
        return request

    def mix(self, name: str) -> Mix:
        """Return a mix.

        Raises:
            ApiError: 400 for an unknown one.
        """
        return self._mixes.require(name, "goal.keep")

    @property
    def mix_texts(self) -> list[str]:
        """Return what answers depend on beside the queries: the mixes that their orders name."""
        return self._mixes.texts

    def without_holds(self, where: str, query: str) -> CandidateRequest:
        """Read a query of a call that names holds beside its queries, if any.

        Raises:
            ApiError: 400.
            SearchGivenUpError, ClientGoneError: as `at` does.
        """
        request = self.at(where, query)
        if request.from_holds:
            raise bad_request(
                f"{where}: Invalid query string parameters: 'from_holds' is a member of the "
                "request, beside 'alternatives'.",
                BAD_VALUE,
            )
        return request


def _require_few_groups(count: int) -> None:
    if count > _MOST_GROUPS:
        raise bad_request(f"The queries of the call have more than {_MOST_GROUPS} request groups.")


def require_names(call: Call, read: Mapping[str, CandidateRequest]) -> None:
    """Check that all names in some queries exist.

    Each question is looked at once, and others have their turn at the Forest in between.

    Args:
        call: The call.
        read: The queries, by where they stand.

    Raises:
        QueryError: for the first that names what does not exist.
    """
    places = {id(request): place for place, request in reversed(list(read.items()))}
    for chunk in chunks(list(places.values()), _NAMES_AT_ONCE):
        with call.services.replica.current() as forest:
            for place in chunk:
                try:
                    require_known_names(forest, read[place])
                except TreeclaimError as error:
                    raise QueryError(place, error) from error
