# SPDX-License-Identifier: Apache-2.0
"""Reads the query of GET /allocation_candidates: its schema, and then its parser in `model.query`."""

from collections.abc import Mapping

from treeclaim.api.protocol.request.validation import Checker, length_of_pairs, query_pairs
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.api.resources.candidates.schemas import QUERY
from treeclaim.model.microversions import Version
from treeclaim.model.query.parser import parse_query, require_few_groups
from treeclaim.model.query.value_parsers import invalid_query
from treeclaim.model.request import CandidateRequest

_LONGEST_CACHED = 8_192
"""Characters of a query whose request is cached: 2 MiB for all, and ten times that for the requests."""

_FIRST_COUNTS = ("limit", "group_policy")
"""Placement checks all values of these, and takes the first (contract page 90, note N5)."""


@cache_short(longest=_LONGEST_CACHED)
def request_of(query_string: str, version: Version, most_groups: int) -> CandidateRequest:
    """Read a query string. Schedulers send few different queries, so the results are kept.

    Raises:
        InvalidQueryError: as `candidate_request`.
    """
    return candidate_request(query_pairs(query_string), version, most_groups)


def candidate_request(
    pairs: list[tuple[str, str]], version: Version, most_groups: int
) -> CandidateRequest:
    """Read and check a query; its groups are counted before anything else of it is checked.

    Raises:
        InvalidQueryError: in the order of contract page 90, section 2.
    """
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    require_few_groups(list(values), most_groups)
    _check_names(values, QUERY.at(version))
    return parse_query(pairs, values, version)


def _check_names(values: Mapping[str, list[str]], checker: Checker) -> None:
    """Step A: names, and the values that are not of a group."""
    first = {name: texts[0] for name, texts in values.items()}
    problem = checker.problem(first, length=length_of_pairs(first.items()))
    for name in _FIRST_COUNTS:
        for value in values.get(name, [])[1:]:
            # The first counts, but a malformed one is wrong wherever it stands (note N5).
            problem = problem or checker.problem({"resources": "", name: value}, length=len(value))
    if problem is not None:
        raise invalid_query(problem)
