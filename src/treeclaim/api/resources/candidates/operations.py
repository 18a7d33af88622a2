# SPDX-License-Identifier: Apache-2.0
"""GET /allocation_candidates (contract page 90), and …/explain (page 97, section 3)."""

from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from operator import attrgetter

from treeclaim.api.protocol.errors import ApiError, api_error, bad_request
from treeclaim.api.protocol.operations import Call, Reply, operation
from treeclaim.api.protocol.remembering import remembering_short
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.validation import (
    Checker,
    invalid_query,
    length_of_pairs,
    query_pairs,
)
from treeclaim.api.protocol.texts import now, quote_value
from treeclaim.api.resources.candidates import schemas
from treeclaim.api.resources.candidates.mixes import Mixes
from treeclaim.api.resources.candidates.parameters import candidate_request
from treeclaim.api.resources.candidates.schemas import EXPLAIN_QUERY, QUERY
from treeclaim.forest.explain.explain import Focus
from treeclaim.model.errors import ProviderNotFoundError, ResourceClassNotFoundError
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.request import BodyForm, CandidateRequest
from treeclaim.replica import Arrival
from treeclaim.replica.questions import candidate_question, explain_question, key_of

_REMEMBERED, _LONGEST_REMEMBERED = 256, 8_192
"""Questions kept in the form in which the search wants them, and characters of each: 2 MiB, and ten
times that for what is read from them."""

DRAW_RULE = "treeclaim:holds:draw"
"""Policy rule of whatever names holds to draw from."""


@operation(
    "GET /allocation_candidates",
    policy="placement:allocation_candidates:list",
    answers=(schemas.CANDIDATES,),
    since=Feature.ALLOCATION_CANDIDATES,
    query=schemas.QUERY,
    forms=schemas.SEARCH_FORMS,
    has_extension_parameters=True,
)
def list_candidates(call: Call) -> Reply:
    """List combinations of providers that satisfy a request."""
    most_groups = call.services.limits.request_groups
    request = request_of(call.request.query_string, call.version, most_groups)
    require_may_draw(call, request)
    arrival = arrival_of(call)
    mixes: Sequence[str] = ()
    if request.order is not None:
        named = Mixes(call, arrival.check)
        request, mixes = named.in_order_of(request), named.texts
    services = call.services
    key = key_of("candidates", call.version, call.request.query_string, *mixes)
    question = candidate_question(request, services.search, _form(call.version), key)
    try:
        body = services.replica.answer(question, arrival)
    except ResourceClassNotFoundError as error:
        raise _unknown_class(error) from error
    return Reply(body=body, modified_at=now(), is_ready_made=True)


def require_may_draw(call: Call, *requests: CandidateRequest) -> None:
    """Check the rule that questions need which count what holds have as free (page 100).

    Raises:
        ApiError: 403.
    """
    if any(map(attrgetter("from_holds"), requests)):
        call.require_allowed(DRAW_RULE)


def arrival_of(call: Call) -> Arrival:
    """Start the deadline of a search, which also ends when its client hangs up."""
    search = call.services.search
    return Arrival.now(search.seconds, call.client_gone, search.most_bytes)


def _unknown_class(error: ResourceClassNotFoundError) -> ApiError:
    """Return the 400 where a query names a class that does not exist (page 90, section 2, step G)."""
    prefix = "Invalid resource class in resources parameter: "
    return api_error(error, prefix=prefix, status=HTTPStatus.BAD_REQUEST)


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def request_of(query_string: str, version: Version, most_groups: int) -> CandidateRequest:
    """Read a query. Schedulers send few different queries, so the results are kept.

    Raises:
        ApiError: 400, if it has more groups than the operator allows before all else.
    """
    pairs = query_pairs(query_string)
    return candidate_request(pairs, version, QUERY.at(version), most_groups)


@cache
def _form(version: Version) -> BodyForm:
    return BodyForm(
        list_allocations=not version.has(Feature.ALLOCATIONS_BY_PROVIDER),
        mappings=version.has(Feature.MAPPINGS),
        traits=version.has(Feature.CANDIDATE_TRAITS),
        all_classes=version.has(Feature.ALL_CLASSES_IN_SUMMARIES),
        nested=version.has(Feature.NESTED_CANDIDATES),
    )


_EXPLAINED, _LONGEST_EXPLAINED = 64, 8_192
"""Questions, and characters of each: half a MiB, and ten times that for what is read from them."""

_MOST_TREES = 50
_OWN = ("nearest", "tree")


@operation(
    "GET /allocation_candidates/explain",
    policy="placement:allocation_candidates:list",
    answers=(schemas.EXPLANATION,),
    query=schemas.EXPLAIN_QUERY,
    forms=schemas.EXPLANATION_FORMS,
    needs_opt_in=True,
)
def explain_candidates(call: Call) -> Reply:
    """Explain the result of a request for candidates."""
    most_groups = call.services.limits.request_groups
    request, focus = _explained_request(call.request.query_string, call.version, most_groups)
    require_may_draw(call, request)
    arrival = arrival_of(call)
    # An order is checked as in a search, and explains nothing.
    Mixes(call, arrival.check).in_order_of(request)
    key = key_of("explain", call.version, call.request.query_string)
    question = explain_question(request, focus, key, shows_held=True)
    try:
        body = call.services.replica.answer(question, arrival)
    except ResourceClassNotFoundError as error:
        raise _unknown_class(error) from error
    except ProviderNotFoundError as error:
        raise bad_request(
            f"Invalid query string parameters: 'tree' {quote_value(error.uuid)} is unknown."
        ) from error
    return Reply(body=body, modified_at=now(), is_ready_made=True)


@remembering_short(_EXPLAINED, _LONGEST_EXPLAINED)
def _explained_request(
    query_string: str, version: Version, most_groups: int
) -> tuple[CandidateRequest, Focus]:
    pairs = query_pairs(query_string)
    checker = EXPLAIN_QUERY.at(version)
    search_pairs = [pair for pair in pairs if pair[0] not in _OWN]
    request = candidate_request(search_pairs, version, checker, most_groups)
    return request, _focus(dict(pairs), checker)


def _focus(values: dict[str, str], checker: Checker) -> Focus:
    focus_values = {name: value for name, value in values.items() if name in _OWN}
    problem = checker.problem(focus_values, length=length_of_pairs(focus_values.items()))
    if problem is not None:
        raise invalid_query(problem)
    nearest = int(focus_values.get("nearest", Focus.nearest))
    if nearest > _MOST_TREES:
        raise invalid_query(f"'nearest' must be at most {_MOST_TREES}. Got: {nearest}")
    tree = focus_values.get("tree")
    if tree is not None and not parameters.is_uuid_like(tree):
        raise invalid_query(
            f"Expected 'tree' parameter to be a format of uuid. Got: {quote_value(tree)}"
        )
    return Focus(nearest, tree)
