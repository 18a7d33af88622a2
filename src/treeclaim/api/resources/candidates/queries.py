# SPDX-License-Identifier: Apache-2.0
"""Reads queries for candidates, from URLs and from bodies, and their mixes (pages 90, 98 and 101)."""

from collections.abc import Callable, Collection, Iterable, Mapping

import orjson

from treeclaim.api.protocol.errors import BAD_VALUE, bad_request, to_api_error
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.request.validation import Checker, count_characters, parse_query_string
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.api.resources.candidates.schemas import QUERY
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.planning import Mix, MixRequest, is_mix_name
from treeclaim.model.microversions import NEWEST, Version
from treeclaim.model.names import quote_value
from treeclaim.model.query.extension import with_mixes
from treeclaim.model.query.parser import parse_query, require_few_groups
from treeclaim.model.query.value_parsers import InvalidQueryError, QueryError, invalid_query
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import Arrival
from treeclaim.store.database.transactions import chunks
from treeclaim.store.operations import mixes as store

_LONGEST_CACHED = 8_192
"""Most characters of a cached query: 2 MiB for all queries, and ten times that for the parsed requests."""

_FIRST_VALUE_APPLIES = ("limit", "group_policy")
"""Parameters of which Placement validates all values and applies the first (contract page 90, note N5)."""

_LONGEST_QUERY = 256 * 1024
"""Most characters of a query in a body: four times the longest address."""

_MOST_GROUPS = 65_536
"""Most request groups of all different queries of a call: 128 queries with the default maximum. Their parsed form needs a
hundred megabytes."""

_NAMES_AT_ONCE = 500
"""Queries whose names are validated in one turn at the Forest, which takes a few milliseconds."""


@cache_short(longest=_LONGEST_CACHED)
def parse_request(query_string: str, version: Version, most_groups: int) -> CandidateRequest:
    """Parse a query string; see `parse_pairs`. Schedulers send few different queries, so the results are cached."""
    return parse_pairs(parse_query_string(query_string), version, most_groups)


def parse_pairs(
    pairs: list[tuple[str, str]], version: Version, most_groups: int
) -> CandidateRequest:
    """Parse and validate a query; the number of its groups is checked first.

    Raises:
        InvalidQueryError: for the first fault, in the order of contract page 90, section 2.
    """
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    require_few_groups(list(values), most_groups)
    _validate_values(values, QUERY.at(version))
    return parse_query(pairs, values, version)


def _validate_values(values: Mapping[str, list[str]], checker: Checker) -> None:
    """Step A: validate the names, and the values of parameters without a group."""
    first_values = {name: texts[0] for name, texts in values.items()}
    problem = checker.find_problem(first_values, length=count_characters(first_values.items()))
    for name in _FIRST_VALUE_APPLIES:
        for value in values.get(name, [])[1:]:
            # The first value applies, but a malformed value is an error at any position (note N5).
            problem = problem or checker.find_problem(
                {"resources": "", name: value}, length=len(value)
            )
    if problem is not None:
        raise invalid_query(problem)


class MixReader:
    """Reads the mixes of a call from the database, each once.

    All methods raise StoreUnavailableError if the database does not answer.
    """

    def __init__(self, call: Call, check_deadline: Callable[[], None]) -> None:
        self._store = call.services.store
        self._most_groups = call.services.options.max_request_groups
        self._check_deadline = check_deadline
        self._texts: dict[str, str] = {}
        self._mixes: dict[str, Mix | None] = {}

    def add_to_order(self, request: CandidateRequest) -> CandidateRequest:
        """Return a copy of a request with the mixes of its order.

        Raises:
            InvalidQueryError: for an unknown mix, or a class that none of its requests has.
        """
        names = () if request.order is None else request.order.mix_names
        return with_mixes(request, self.load(names)) if names else request

    def require(self, name: str, place: str) -> Mix:
        """Return a mix; raise a 400 with its place in the call if it does not exist."""
        by_name = self.load((name,))
        if name not in by_name:
            raise bad_request(f"{place}: there is no mix {quote_value(name)!r}.", BAD_VALUE)
        return by_name[name]

    def load(self, names: Collection[str]) -> dict[str, Mix]:
        """Return those of the mixes that exist, by name."""
        if unread_names := sorted(set(names) - self._mixes.keys()):
            texts = self._store.read(store.load_texts, list(filter(is_mix_name, unread_names)))
            self._texts.update(texts)
            for name in unread_names:
                self._mixes[name] = self._parse_mix(name, texts[name]) if name in texts else None
        return {name: mix for name in names if (mix := self._mixes[name]) is not None}

    @property
    def texts(self) -> list[str]:
        """Return the mixes as texts, for the cache keys of answers."""
        return [f"{name}={text}" for name, text in sorted(self._texts.items())]

    def _parse_mix(self, name: str, text: str) -> Mix:
        requests = {}
        for key, entry in orjson.loads(text)["requests"].items():
            self._check_deadline()
            try:
                request = parse_request(entry["query"], NEWEST, self._most_groups)
            except InvalidQueryError:
                # The operator has lowered the number of groups, so no consumer can be placed by this request.
                continue
            requests[key] = MixRequest(request, int(entry["weight"]))
        return Mix(name, requests)


class QueryParser:
    """Parses the queries of a call, each text once, within its deadline; `mixes` reads the mixes of the call."""

    def __init__(self, call: Call, arrival: Arrival, texts: Iterable[str]) -> None:
        """Raise a 400 if all queries together have too many groups; parse none of them."""
        _require_few_groups(sum(f"&{text}".count("&resources") for text in set(texts)))
        self._version = call.version
        self._most_groups = call.services.options.max_request_groups
        self._arrival = arrival
        self._requests: dict[str, CandidateRequest] = {}
        self.mixes = MixReader(call, arrival.check)
        self._groups = 0

    def parse(self, place: str, query: str) -> CandidateRequest:
        """Parse the query at a place of the body, which begins the text of an error.

        Raises:
            ApiError: 400.
            SearchGivenUpError: if the deadline has passed.
            ClientGoneError: if the client has disconnected.
        """
        self._arrival.check()
        cached_request = self._requests.get(query)
        if cached_request is not None:
            return cached_request
        if len(query) > _LONGEST_QUERY:
            raise bad_request(f"{place}: a query is longer than {_LONGEST_QUERY} characters.")
        try:
            request = parse_request(query, self._version, self._most_groups)
            request = self.mixes.add_to_order(request)
        except InvalidQueryError as error:
            raise to_api_error(error, f"{place}: {error}") from error
        # The constructor has not counted parameters with percent-encoded names.
        self._groups += len(request.groups)
        _require_few_groups(self._groups)
        self._requests[query] = request
        return request

    def parse_without_holds(self, place: str, query: str) -> CandidateRequest:
        """Parse a query as `parse` does; raise a 400 if it has `from_holds`, which is a member of the body instead."""
        request = self.parse(place, query)
        if request.from_holds:
            raise bad_request(
                f"{place}: Invalid query string parameters: 'from_holds' is a member of the "
                "request, beside 'alternatives'.",
                BAD_VALUE,
            )
        return request


def _require_few_groups(count: int) -> None:
    if count > _MOST_GROUPS:
        raise bad_request(f"The queries of the call have more than {_MOST_GROUPS} request groups.")


def require_names(call: Call, requests: Mapping[str, CandidateRequest]) -> None:
    """Raise QueryError for the first query with an unknown name; `requests` has the parsed queries by their places.

    Each query is validated once. Other requests get turns at the Forest in between.
    """
    places = {id(request): place for place, request in reversed(list(requests.items()))}
    for chunk in chunks(list(places.values()), _NAMES_AT_ONCE):
        with call.services.replica.borrow_forest() as forest:
            for place in chunk:
                try:
                    require_known_names(forest, requests[place])
                except TreeclaimError as error:
                    raise QueryError(place, error) from error
