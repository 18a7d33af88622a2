# SPDX-License-Identifier: Apache-2.0
"""The member `given` of questions (contract page 101, section 1).

Every function raises ApiError, a 400 that says what is wrong, and where.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call, Forms, Versioned
from treeclaim.api.protocol.request.schemas import (
    INTEGER,
    MANY_UUIDS,
    MOST_NAMED,
    Schema,
    mapping,
    record,
)
from treeclaim.api.resources.candidates.queries import Queries
from treeclaim.api.resources.candidates.schemas import described
from treeclaim.api.resources.conditions import CONDITION, condition_of
from treeclaim.api.resources.extension.batches import entries_of, entry_schema, refusal
from treeclaim.model.deadlines import Deadline
from treeclaim.model.extension.batches.batch import BatchEntry, BatchRefusedError
from treeclaim.model.extension.conditions import KEY, MOST_CONDITIONS
from treeclaim.model.extension.planning import NOTHING_GIVEN, Given
from treeclaim.model.microversions import NEWEST, Version
from treeclaim.model.names import normalised_uuid
from treeclaim.model.parts import CONDITIONS
from treeclaim.replica import Asked, Question
from treeclaim.replica.kept import Piece
from treeclaim.replica.planning import question_under

LIST_RULE = "placement:allocations:list"
"""Policy rule of whatever looks at consumers."""

_MOST_QUERIES = 64
_MOST_PLACED = 100_000

_PLACED = record(
    {
        "query": {"type": "string"},
        "amount": {"type": "integer", "minimum": 1, "maximum": _MOST_PLACED},
    }
)


def _entry_schema(version: Version) -> Schema:
    """Return the schema of a provider: that of a batch, and conditions (page 102, section 3)."""
    return _with_conditions(version, CONDITION)


def _with_conditions(version: Version, schema: Schema) -> Schema:
    conditions = mapping(f"^{KEY}$", schema) | {"maxProperties": MOST_CONDITIONS}
    return entry_schema(version, {CONDITIONS.name: conditions})


_ENTRY = Versioned(_entry_schema)

GIVEN = record(
    {},
    {
        "release": MANY_UUIDS,
        "without": MANY_UUIDS,
        # Each is checked by itself, to report all faults.
        "providers": {
            "type": "array",
            "maxItems": MOST_NAMED,
            "items": {"type": "object"},
        },
        "place": record(
            {"requests": {"type": "array", "maxItems": _MOST_QUERIES, "items": _PLACED}}
        ),
    },
)
"""Schema of the member."""


def with_given(schema: Schema) -> Schema:
    """Return the schema of a body with queries, and perhaps `given`, as it is described."""
    body = described(schema)
    if "given" in body["properties"]:
        given = body["properties"]["given"]
        given["properties"]["providers"]["items"] = _with_conditions(NEWEST, described(CONDITION))
    return body


QUERIES = Forms(body=with_given)
"""Forms of bodies with queries in them, and `given`."""

TOLD = record({"placed": {"type": "array", "items": INTEGER}})
"""Schema of what answers say about it."""


def queries_of_given(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the queries of what is given in a body."""
    for placed in body.get("given", {}).get("place", {}).get("requests", ()):
        yield placed["query"]


def given_of(call: Call, body: Mapping[str, Any], queries: Queries) -> Given:
    """Read what is given in a body.

    Raises:
        ApiError: 400, 403.
    """
    given = body.get("given")
    if given is None:
        return NOTHING_GIVEN
    if given.get("release"):
        call.require_allowed(LIST_RULE)
    placed = given.get("place", {}).get("requests", ())
    amount = sum(int(entry["amount"]) for entry in placed)
    if amount > _MOST_PLACED:
        raise bad_request(f"given.place: {amount} consumers are more than {_MOST_PLACED}.")
    return Given(
        release=uuids_of(given.get("release", ())),
        without=uuids_of(given.get("without", ())),
        providers=tuple(_entries(call, given.get("providers", ()))),
        place=tuple(
            (
                queries.without_holds(f"given.place.requests[{number}].query", entry["query"]),
                int(entry["amount"]),
            )
            for number, entry in enumerate(placed)
        ),
    )


def _entries(call: Call, items: Sequence[Mapping[str, Any]]) -> Iterator[BatchEntry]:
    entries = entries_of(call, items, _ENTRY)
    for entry, item in zip(entries, call.deadline.watched(items), strict=True):
        if CONDITIONS.name not in item:
            yield entry
            continue
        read = (condition_of(call, key, given) for key, given in item[CONDITIONS.name].items())
        yield replace(entry, values={**entry.values, CONDITIONS.name: tuple(sorted(read))})


def domains_of(given: str | Sequence[str]) -> tuple[str, ...] | None:
    """Return the aggregates that are the domains of a rule or a question; None for trees."""
    return None if given == "tree" else tuple(dict.fromkeys(given))


def uuids_of(given: Iterable[str]) -> tuple[str, ...]:
    """Return uuids that were checked, as `PUT /allocations` normalises them."""
    return tuple(normalised_uuid(uuid) or uuid for uuid in given)


def answered(call: Call, question: Question, given: Given, asked: Asked) -> Iterable[Piece]:
    """Answer a question as things are, or as they would be.

    Raises:
        ApiError: 400, 409.
        TreeclaimError: what the question gives reason for.
    """
    if not given:
        return call.services.replica.answer(question, asked)
    with refusing_entries(call.deadline):
        return call.services.replica.answer(question_under(given, question), asked)


@contextmanager
def refusing_entries(deadline: Deadline) -> Iterator[None]:
    """Answer 400 or 409, as page 99 does, where entries of providers are faulty."""
    try:
        yield
    except BatchRefusedError as error:
        raise refusal(error, deadline) from error
