# SPDX-License-Identifier: Apache-2.0
"""GET /allocation_candidates (contract page 90), and …/explain (page 97, section 3)."""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.resources.candidates import schemas
from treeclaim.api.resources.candidates.queries import MixReader, parse_pairs, parse_request
from treeclaim.api.resources.extension.lists import refuse_unknown_class
from treeclaim.forest.explain.explain import Focus
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import quote_value
from treeclaim.model.request import BodyForm
from treeclaim.replica import Arrival
from treeclaim.replica.questions import candidate_question, explain_question, make_question_key

_REFUSALS = (refuse_unknown_class("resources"),)

_DRAW_RULE = "treeclaim:holds:draw"
"""Policy rule of requests with `from_holds`."""


class _Draw(Protocol):
    @property
    def from_holds(self) -> Sequence[str]: ...


@operation(
    "GET /allocation_candidates",
    policy="placement:allocation_candidates:list",
    shows=schemas.CANDIDATES,
    since=Feature.ALLOCATION_CANDIDATES,
    query=schemas.QUERY,
    forms=schemas.SEARCH_FORMS,
    refusals=_REFUSALS,
)
def list_candidates(call: Call) -> Answer:
    """List combinations of providers that satisfy a request."""
    most_groups = call.services.options.max_request_groups
    request = parse_request(call.request.query_string, call.version, most_groups)
    require_may_draw(call, request)
    arrival = start_search(call)
    mixes = MixReader(call, arrival.check)
    request = mixes.add_to_order(request)
    services = call.services
    key = make_question_key("candidates", call.version, call.request.query_string, *mixes.texts)
    question = candidate_question(request, services.search, _select_form(call.version), key)
    return services.replica.answer(question, arrival)


def require_may_draw(call: Call, *draws: _Draw) -> None:
    """Raise a 403 for `from_holds` in a request, claim or body, if the policy forbids it (page 100)."""
    if any(draw.from_holds for draw in draws):
        call.require_allowed(_DRAW_RULE)


def start_search(call: Call) -> Arrival:
    """Start the deadline of a search; the search also ends if the client disconnects."""
    search = call.services.search
    return Arrival.now(search.seconds, call.client_gone, search.most_bytes)


@cache
def _select_form(version: Version) -> BodyForm:
    return BodyForm(
        list_allocations=not version.has(Feature.ALLOCATIONS_BY_PROVIDER),
        mappings=version.has(Feature.MAPPINGS),
        traits=version.has(Feature.CANDIDATE_TRAITS),
        all_classes=version.has(Feature.ALL_CLASSES_IN_SUMMARIES),
        nested=version.has(Feature.NESTED_CANDIDATES),
    )


@operation(
    "GET /allocation_candidates/explain",
    policy="placement:allocation_candidates:list",
    shows=schemas.EXPLANATION,
    query=schemas.EXPLAIN_QUERY,
    forms=schemas.SEARCH_FORMS,
    needs_opt_in=True,
    refusals=_REFUSALS,
)
def explain_candidates(call: Call) -> Answer:
    """Explain the result of a request for candidates."""
    pairs, own_names = call.read_query(), schemas.FocusQuery.model_fields
    search_pairs = [pair for pair in pairs if pair[0] not in own_names]
    most_groups = call.services.options.max_request_groups
    request = parse_pairs(search_pairs, call.version, most_groups)
    query: schemas.FocusQuery = schemas.FOCUS.read_pairs(
        pair for pair in pairs if pair[0] in own_names
    )
    require_may_draw(call, request)
    arrival = start_search(call)
    # The order is validated as in a search, but does not affect the explanation.
    MixReader(call, arrival.check).add_to_order(request)
    key = make_question_key("explain", call.version, call.request.query_string)
    question = explain_question(request, Focus(query.nearest, query.tree), key, shows_held=True)
    try:
        body = call.services.replica.answer(question, arrival)
    except ProviderNotFoundError as error:
        raise bad_request(
            f"Invalid query string parameters: 'tree' {quote_value(error.uuid)} is unknown."
        ) from error
    return body
