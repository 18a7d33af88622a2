# SPDX-License-Identifier: Apache-2.0
"""Assumptions: the member `given` of bodies (contract page 101, section 1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.request.bodies import (
    Body,
    BodyReader,
    ConditionKey,
    Consumers,
    Providers,
    Query,
    list_length,
)
from treeclaim.api.protocol.request.schemas import MOST_NAMED, Shape
from treeclaim.api.resources.candidates.queries import QueryParser
from treeclaim.api.resources.extension.provider_batch import ProviderEntry, read_entries
from treeclaim.api.resources.extension.provider_parts import ConditionBody, read_condition
from treeclaim.model.extension.batch import BatchEntry
from treeclaim.model.extension.planning import NO_ASSUMPTIONS, AssumptionSet
from treeclaim.model.parts import CONDITIONS
from treeclaim.model.provider import MOST_CONDITIONS
from treeclaim.replica import Arrival, Question
from treeclaim.replica.answer_cache import Piece
from treeclaim.replica.planning import question_under

LIST_RULE = "placement:allocations:list"
"""Policy rule of calls that return consumers."""

_MOST_QUERIES = 64
_MOST_PLACED = 100_000


class AssumedProvider(ProviderEntry):
    """An assumed provider: an entry of a batch, with conditions (page 102, section 3)."""

    conditions: (
        Annotated[
            dict[ConditionKey, ConditionBody],
            Field(max_length=MOST_CONDITIONS),
        ]
        | None
    ) = None


_ENTRY = BodyReader(AssumedProvider)


class AmountOfQuery(Body):
    """A number of consumers with the same query."""

    query: Query
    amount: Annotated[int, Field(ge=1, le=_MOST_PLACED)]


class AssumedPlacement(Body):
    """Consumers that are assumed to be placed."""

    requests: Annotated[tuple[AmountOfQuery, ...], list_length(0, _MOST_QUERIES)]


class Assumptions(Body):
    """Assumptions in the order of their application; `read_entries` validates each provider, to report all faults."""

    release: Consumers = ()
    without: Providers = ()
    providers: Annotated[
        tuple[dict[str, Any], ...],
        list_length(0, MOST_NAMED),
        WithJsonSchema({"type": "array", "maxItems": MOST_NAMED, "items": _ENTRY.schema}),
    ] = ()
    place: AssumedPlacement = AssumedPlacement(requests=())


class QuestionBody(Body):
    """A body with optional assumptions."""

    given: Assumptions | None = None

    @property
    def placed(self) -> tuple[AmountOfQuery, ...]:
        """Return the queries and numbers of consumers that are assumed to be placed."""
        return () if self.given is None else self.given.place.requests

    @property
    def placed_queries(self) -> Iterator[str]:
        """Yield the queries of the assumptions."""
        return (entry.query for entry in self.placed)


ASSUMED: Shape = {"placed": [int]}
"""The member `given` of responses."""


def read_assumptions(call: Call, body: QuestionBody, queries: QueryParser) -> AssumptionSet:
    """Read the assumptions of a body.

    Raises:
        ApiError: 400, 403.
    """
    assumptions = body.given
    if assumptions is None:
        return NO_ASSUMPTIONS
    if assumptions.release:
        call.require_allowed(LIST_RULE)
    amount = sum(entry.amount for entry in body.placed)
    if amount > _MOST_PLACED:
        raise bad_request(f"given.place: {amount} consumers are more than {_MOST_PLACED}.")
    return AssumptionSet(
        release=assumptions.release,
        without=assumptions.without,
        providers=tuple(_read_entries(call, assumptions.providers)),
        place=tuple(
            (
                queries.parse_without_holds(f"given.place.requests[{number}].query", entry.query),
                entry.amount,
            )
            for number, entry in enumerate(body.placed)
        ),
    )


def _read_entries(call: Call, documents: Sequence[Mapping[str, Any]]) -> Iterator[BatchEntry]:
    for body in call.deadline.each(read_entries(call, documents, _ENTRY)):
        entry: BatchEntry = body.read()
        if body.conditions is not None:
            conditions = sorted(
                read_condition(call, key, condition) for key, condition in body.conditions.items()
            )
            entry = replace(entry, values={**entry.values, CONDITIONS.name: tuple(conditions)})
        yield entry


def answer_question(
    call: Call, question: Question, assumptions: AssumptionSet, arrival: Arrival
) -> Iterable[Piece]:
    """Answer a question, under assumptions if there are any.

    Raises:
        TreeclaimError: as the question; BatchRefusedError for invalid assumptions.
    """
    if not assumptions:
        return call.services.replica.answer(question, arrival)
    return call.services.replica.answer(question_under(assumptions, question), arrival)
