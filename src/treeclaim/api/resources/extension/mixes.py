# SPDX-License-Identifier: Apache-2.0
"""Mixes: the requests that a cloud expects (contract page 101, section 2)."""

from typing import Annotated, Any

import orjson
from pydantic import Field

from treeclaim.api.protocol.errors import BAD_VALUE, bad_request, not_found
from treeclaim.api.protocol.operations import Answer, Call, ValueForms, operation
from treeclaim.api.protocol.request.bodies import Body, Query
from treeclaim.api.protocol.request.schemas import Shape, text
from treeclaim.api.resources.candidates.operations import start_search
from treeclaim.api.resources.candidates.queries import QueryParser, require_names
from treeclaim.model.extension.planning import MIX_NAME, MOST_REQUESTS, MOST_WEIGHT, is_mix_name
from treeclaim.model.names import quote_value
from treeclaim.model.request import CandidateRequest
from treeclaim.store.operations import mixes

_LONGEST = 256 * 1024
"""Most bytes of a mix, which every call with the mix parses."""

_MIX: Shape = {"requests": {str: {"query": str, "weight": int}}}


class WeightedQuery(Body):
    """A request of a mix, with its weight."""

    query: Query
    weight: Annotated[int, Field(ge=1, le=MOST_WEIGHT)]


class MixBody(Body):
    """The requests of a mix by name."""

    requests: Annotated[dict[str, WeightedQuery], Field(min_length=1, max_length=MOST_REQUESTS)]


@operation(
    "GET /treeclaim/mixes",
    policy="placement:allocation_candidates:list",
    shows={"mixes": {str: _MIX}},
)
def list_mixes(call: Call) -> Answer:
    """List mixes: the requests that the cloud expects."""
    return {"mixes": call.services.store.read(mixes.load_mixes)}


@operation(
    "GET /treeclaim/mixes/{name}",
    policy="placement:allocation_candidates:list",
    shows=_MIX,
)
def show_mix(call: Call) -> Answer:
    """Show a mix as it was written."""
    name = _require_valid_name(call)
    texts = call.services.store.read(mixes.load_texts, [name])
    if name not in texts:
        raise not_found(f"No mix named {name} found.")
    mix: dict[str, Any] = orjson.loads(texts[name])
    return mix


@operation(
    "PUT /treeclaim/mixes/{name}",
    policy="treeclaim:mixes:update",
    forms=ValueForms(path={"name": text(MIX_NAME)}),
)
def put_mix(call: Call, body: MixBody) -> None:
    """Create or replace a mix."""
    name = call.arguments["name"]
    if not is_mix_name(name):
        raise bad_request(
            f"Invalid name of a mix: {quote_value(name)} is not of the form {MIX_NAME}."
        )
    document = body.model_dump()
    texts = {f"requests.{name}": entry.query for name, entry in body.requests.items()}
    if len(orjson.dumps(document)) > _LONGEST:
        raise bad_request(f"A mix is longer than {_LONGEST} bytes.")
    queries = QueryParser(call, start_search(call), texts.values())
    parsed_requests = {
        quote_value(place): queries.parse(quote_value(place), query)
        for place, query in texts.items()
    }
    for place, request in parsed_requests.items():
        _require_plain(place, request)
    require_names(call, parsed_requests)
    call.services.store.write(mixes.put, name, document)


@operation(
    "DELETE /treeclaim/mixes/{name}",
    policy="treeclaim:mixes:update",
)
def delete_mix(call: Call) -> None:
    """Delete a mix."""
    call.services.store.write(mixes.delete, _require_valid_name(call))


def _require_valid_name(call: Call) -> str:
    """Return the name in the path; raise a 404 if no mix can have this name."""
    name = call.arguments["name"]
    if not is_mix_name(name):
        raise not_found(f"No mix named {quote_value(name)} found.")
    return name


def _require_plain(place: str, request: CandidateRequest) -> None:
    """Raise a 400 for a request with an order, a limit or holds: a mix is about needed resources only."""
    if request.order is not None or request.limit is not None or request.from_holds:
        raise bad_request(
            f"{place}: Invalid query string parameters: a mix must not have 'order_by', "
            "'preferred', 'limit' or 'from_holds'.",
            BAD_VALUE,
        )
