# SPDX-License-Identifier: Apache-2.0
"""Common members of the bodies of plans, and their answers (contract page 101, sections 4 and 5)."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Annotated, Any

from pydantic import Field, WrapValidator

from treeclaim.api.protocol.operations import Answer, Call
from treeclaim.api.protocol.request.bodies import (
    Alternatives,
    Body,
    Consumers,
    ConsumerUuid,
    Domains,
    Positive,
    items,
)
from treeclaim.api.protocol.request.schemas import MOST_NAMED, TYPE_NAME
from treeclaim.api.protocol.request.validation import parse_query_string
from treeclaim.api.resources.candidates.queries import Queries, parse_pairs
from treeclaim.api.resources.planning.assumptions import (
    LIST_RULE,
    QuestionBody,
    read_assumptions,
)
from treeclaim.model.extension.planning import PlanRule
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import Arrival
from treeclaim.replica.planning import Planner, plan_question

_MOST_RULES = 16

_GRACE = 30.0
"""Seconds after the deadline of plans until an unfinished child is killed: the child writes its answer then, and may be
in a step that does not check the deadline."""

ConsumerTypes = Annotated[
    frozenset[Annotated[str, Field(pattern=TYPE_NAME)]], Field(strict=False, max_length=1_000)
]
"""Names of consumer types, or the word for consumers without a type."""


def _read_requests(value: Any, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    requests = read(value)
    if len(requests) < len(value):
        raise ValueError("a consumer is named twice")
    return requests


class ConsumerRule(Body):
    """A rule between consumers that are moved or placed again."""

    domains: Domains
    consumers: Consumers
    max_per_domain: Positive


class PlanBody(QuestionBody):
    """Members of the bodies of all plans."""

    requests: Annotated[
        dict[ConsumerUuid, Alternatives],
        Field(max_length=MOST_NAMED),
        WrapValidator(_read_requests),
    ] = Field(default_factory=dict)
    rules: Annotated[tuple[ConsumerRule, ...], items(0, _MOST_RULES)] = ()
    explain: bool = False


class PlanCall:
    """A call for a plan.

    Attributes:
        end: Time at which the best plan so far is returned, of the monotonic clock.
        queries: Parses further queries of the call.
        rules: Rules for consumers that are moved or placed again.
    """

    def __init__(self, call: Call, body: PlanBody, others: Iterable[str] = ()) -> None:
        """Read the common members of plans; `others` are further queries of the call.

        Raises:
            ApiError: 400, 403.
        """
        call.require_allowed(LIST_RULE)
        seconds = call.services.options.plan_seconds
        most_bytes = call.services.search.most_bytes
        self._call = call
        self._body = body
        self._arrival = Arrival.now(seconds + _GRACE, call.client_gone, most_bytes)
        self.end = self._arrival.begin + seconds
        texts = chain(*body.requests.values(), body.placed_queries, others)
        self.queries = Queries(call, self._arrival, texts)
        self._parsed = {
            place: self.queries.without_holds(place, text)
            for consumer, alternatives in body.requests.items()
            for place, text in (
                (f"requests.{consumer}[{number}]", text)
                for number, text in enumerate(alternatives)
            )
        }
        self.rules = tuple(
            PlanRule(rule.domains or None, frozenset(rule.consumers), rule.max_per_domain)
            for rule in body.rules
        )
        self._assumptions = read_assumptions(call, body, self.queries)

    def answer(
        self,
        planner: Planner,
        parsed: Mapping[str, CandidateRequest] | None = None,
        holds: Iterable[str] = (),
    ) -> Answer:
        """Answer with a plan.

        Args:
            planner: Computes the plan.
            parsed: Further parsed queries by their places.
            holds: The holds whose amounts the plan uses.

        Raises:
            ApiError: 400, 409.
            OverloadedError: while another plan is being computed.
        """
        most_groups = self._call.services.options.max_request_groups
        version = self._call.version

        def read_kept(text: str) -> CandidateRequest:
            return parse_pairs(parse_query_string(text), version, most_groups)

        question = plan_question(
            self._assumptions,
            planner,
            self._body.requests,
            {**self._parsed, **(parsed or {})},
            read_kept,
            named=frozenset(holds),
        )
        return self._call.services.replica.answer(question, self._arrival)
