# SPDX-License-Identifier: Apache-2.0
"""GET /allocation_candidates/explain (contract page 97, section 3)."""

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.remembering import remembering_short
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.validation import (
    Checker,
    invalid_query,
    length_of_pairs,
    query_pairs,
)
from treeclaim.api.protocol.texts import quoted
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.candidates.handlers import (
    asked_by,
    refusing_unknown_names,
    require_may_draw,
)
from treeclaim.api.resources.candidates.mixes import Mixes
from treeclaim.api.resources.candidates.parameters import candidate_request
from treeclaim.api.resources.candidates.schemas import EXPLAIN_QUERY
from treeclaim.forest.explain.explain import Focus
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.microversions import ExtensionFeature, Version
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import ExplainQuestion
from treeclaim.replica.questions import key_of

_REMEMBERED, _LONGEST_REMEMBERED = 64, 8_192
"""Questions, and characters of each: half a MiB, and ten times that for what is read from them."""

_MOST_TREES = 50
_OWN = ("nearest", "tree")


def explain_candidates(call: Call) -> Reply:
    """Tell why a request for candidates finds what it finds."""
    most_groups = call.services.limits.request_groups
    request, focus = _asked(call.request.query_string, call.version, most_groups)
    require_may_draw(call, request)
    asked = asked_by(call)
    # An order is checked as in a search, and explains nothing.
    Mixes(call, asked.check).in_order_of(request)
    key = key_of("explain", call.version, call.request.query_string)
    shows_held = call.version.brings(ExtensionFeature.HOLDS)
    question = ExplainQuestion(request, focus, key, shows_held=shows_held)
    try:
        with refusing_unknown_names():
            body = call.services.replica.answer(question, asked)
    except ProviderNotFoundError as error:
        raise bad_request(
            f"Invalid query string parameters: 'tree' {quoted(error.uuid)} is unknown."
        ) from error
    return Reply(body=body, modified_at=now(), is_ready_made=True)


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def _asked(
    query_string: str, version: Version, most_groups: int
) -> tuple[CandidateRequest, Focus]:
    pairs = query_pairs(query_string)
    checker = EXPLAIN_QUERY.at(version)
    others = [pair for pair in pairs if pair[0] not in _OWN]
    request = candidate_request(others, version, checker, most_groups)
    return request, _focus(dict(pairs), checker)


def _focus(values: dict[str, str], checker: Checker) -> Focus:
    own = {name: value for name, value in values.items() if name in _OWN}
    problem = checker.problem(own, length=length_of_pairs(own.items()))
    if problem is not None:
        raise invalid_query(problem)
    nearest = int(own.get("nearest", Focus.nearest))
    if nearest > _MOST_TREES:
        raise invalid_query(f"'nearest' must be at most {_MOST_TREES}. Got: {nearest}")
    tree = own.get("tree")
    if tree is not None and not parameters.is_uuid_like(tree):
        raise invalid_query(
            f"Expected 'tree' parameter to be a format of uuid. Got: {quoted(tree)}"
        )
    return Focus(nearest, tree)
