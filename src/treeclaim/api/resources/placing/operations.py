# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/candidates, …/placements and …/capacity (contract page 98, sections 3 to 5)."""

import time
from itertools import chain

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call, Operation, Reply, Versioned
from treeclaim.api.protocol.request.validation import (
    MOST_VALUES_IN_BULK,
    MOST_VALUES_OF_SOME,
)
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.candidates.operations import asked_by, require_may_draw
from treeclaim.api.resources.candidates.queries import Queries, refusing_queries
from treeclaim.api.resources.placing import schemas
from treeclaim.api.resources.placing.placements import placed_by
from treeclaim.api.resources.placing.reading import placing_of, queries_of_placing
from treeclaim.api.resources.planning import given as forms
from treeclaim.api.resources.planning.given import answered, given_of, queries_of_given
from treeclaim.forest.placing.counting.capacity import Fitting
from treeclaim.model.microversions import ExtensionFeature
from treeclaim.replica.placing_questions import AlternativesQuestion, CapacityQuestion
from treeclaim.replica.questions import key_of

_DEFAULT_PARTS = 1_000

_SHARE_OF_TIME = 0.8
"""Share of the deadline of searches in which numbers are counted: the rest is for telling them."""


def find_alternatives(call: Call) -> Reply:
    """Answer the first of some queries that has a candidate."""
    document = call.json()
    texts = document["alternatives"]
    asked = asked_by(call)
    queries = Queries(call, asked, [*texts, *queries_of_given(document)])
    with refusing_queries():
        requests = {
            f"alternatives[{number}]": queries.at(f"alternatives[{number}]", query)
            for number, query in enumerate(texts)
        }
        require_may_draw(call, *requests.values())
        given = given_of(call, document, queries)
        parts = (*texts, *queries.mix_texts)
        key = None if given else key_of("alternatives", call.version, *parts)
        question = AlternativesQuestion(requests, call.services.search, key)
        body = answered(call, question, given, asked)
    return Reply(body=body, modified_at=now(), is_ready_made=True)


def place_consumers(call: Call) -> Reply:
    """Find places for consumers, and write down that they are there."""
    body = call.json()
    asked = asked_by(call)
    with refusing_queries():
        queries = Queries(call, asked, chain(queries_of_placing(body), queries_of_given(body)))
        placing = placing_of(call, body, queries)
        given = given_of(call, body, queries)
        if "given" in body and not body.get("dry_run", False):
            raise bad_request("'given' needs 'dry_run'.")
        return placed_by(call, placing, asked, is_dry=body.get("dry_run", False), given=given)


def count_fitting(call: Call) -> Reply:
    """Tell how many consumers of some requests fit."""
    body = call.json()
    domains = body.get("domains")
    asked = asked_by(call)
    queries = Queries(call, asked, [*body["requests"].values(), *queries_of_given(body)])
    seconds = asked.seconds
    fitting = Fitting(
        domains=None if domains is None else () if domains == "tree" else tuple(domains),
        limit=body.get("limit", _DEFAULT_PARTS),
        end=None if seconds is None else time.monotonic() + _SHARE_OF_TIME * seconds,
    )
    with refusing_queries():
        requests = {
            name: queries.at(f"requests.{name}", query) for name, query in body["requests"].items()
        }
        require_may_draw(call, *requests.values())
        given = given_of(call, body, queries)
        answer = answered(call, CapacityQuestion(requests, fitting), given, asked)
        return Reply(body=answer, is_ready_made=True)


OPERATIONS = (
    Operation(
        "POST",
        "/treeclaim/candidates",
        find_alternatives,
        policy="placement:allocation_candidates:list",
        summary="List the candidates of the first of some queries that has any.",
        answers=(schemas.ALTERNATIVES,),
        body=Versioned(schemas.alternatives),
        most_values=MOST_VALUES_IN_BULK,
        forms=forms.QUERIES,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
        only_reads=True,
    ),
    Operation(
        "POST",
        "/treeclaim/placements",
        place_consumers,
        policy="treeclaim:placements:create",
        summary="Find places for consumers, and claim them in one transaction.",
        answers=(schemas.PLACED, schemas.NOTHING_WRITTEN),
        body=Versioned(schemas.placements),
        most_values=MOST_VALUES_OF_SOME,
        forms=forms.QUERIES,
        negotiates=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
    Operation(
        "POST",
        "/treeclaim/capacity",
        count_fitting,
        policy="placement:allocation_candidates:list",
        summary="Count how many consumers of some requests fit.",
        answers=(schemas.CAPACITY,),
        body=Versioned(schemas.capacity),
        most_values=MOST_VALUES_IN_BULK,
        forms=forms.QUERIES,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
        only_reads=True,
    ),
)
