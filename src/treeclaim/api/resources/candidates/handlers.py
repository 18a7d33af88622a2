# SPDX-License-Identifier: Apache-2.0
"""GET /allocation_candidates (contract page 90)."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from treeclaim.api.protocol.errors import api_error
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.remembering import remembering_short
from treeclaim.api.protocol.request.validation import query_pairs
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.candidates.mixes import Mixes
from treeclaim.api.resources.candidates.parameters import candidate_request
from treeclaim.api.resources.candidates.schemas import QUERY
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.request import BodyForm, CandidateRequest
from treeclaim.replica import Asked, CandidateQuestion
from treeclaim.replica.questions import key_of

_REMEMBERED, _LONGEST_REMEMBERED = 256, 8_192
"""Questions kept in the form in which the search wants them, and characters of each: 2 MiB, and ten
times that for what is read from them."""

DRAW_RULE = "treeclaim:holds:draw"
"""Policy rule of whatever names holds to draw from."""

_FORMS = 128
"""Forms of answers that are kept: one for each microversion, with each version of the extension."""


def list_candidates(call: Call) -> Reply:
    """Answer which combinations of providers satisfy a request."""
    most_groups = call.services.limits.request_groups
    request = request_of(call.request.query_string, call.version, most_groups)
    require_may_draw(call, request)
    asked = asked_by(call)
    mixes = Mixes(call, asked.check)
    request = mixes.in_order_of(request)
    form = _form(call.version)
    services = call.services
    key = key_of("candidates", call.version, call.request.query_string, *mixes.texts)
    question = CandidateQuestion(request, services.search, form, key)
    with refusing_unknown_names():
        body = services.replica.answer(question, asked)
    return Reply(body=body, modified_at=now(), is_ready_made=True)


def require_may_draw(call: Call, *requests: CandidateRequest) -> None:
    """Check the rule that questions need which count what holds have as free (page 100).

    Raises:
        ApiError: 403.
    """
    if any(request.from_holds for request in requests):
        call.require_allowed(DRAW_RULE)


def asked_by(call: Call) -> Asked:
    """Start the deadline of a search, which also ends when its client hangs up."""
    search = call.services.search
    return Asked.now(search.seconds, call.client_gone, search.most_bytes)


@contextmanager
def refusing_unknown_names() -> Iterator[None]:
    """Answer 400 where a query names what does not exist (page 90, section 2, step G)."""
    try:
        yield
    except ResourceClassNotFoundError as error:
        raise api_error(
            error,
            prefix="Invalid resource class in resources parameter: ",
            status=HTTPStatus.BAD_REQUEST,
        ) from error
    except TraitsNotFoundError as error:
        raise api_error(error) from error


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def request_of(query_string: str, version: Version, most_groups: int) -> CandidateRequest:
    """Read a query. Schedulers send few different queries, so the results are kept.

    Raises:
        ApiError: 400, if it has more groups than the operator allows before all else.
    """
    pairs = query_pairs(query_string)
    return candidate_request(pairs, version, QUERY.at(version), most_groups)


@remembering_short(_FORMS, 0)
def _form(version: Version) -> BodyForm:
    return BodyForm(
        list_allocations=not version.has(Feature.ALLOCATIONS_BY_PROVIDER),
        mappings=version.has(Feature.MAPPINGS),
        traits=version.has(Feature.CANDIDATE_TRAITS),
        all_classes=version.has(Feature.ALL_CLASSES_IN_SUMMARIES),
        nested=version.has(Feature.NESTED_CANDIDATES),
    )
