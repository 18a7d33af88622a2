# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/flavors (contract page 97, section 4.1)."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Answer, Call, Reply, Versioned, operation
from treeclaim.api.protocol.request.schemas import BOOLEAN, STRING, Schema, record
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK
from treeclaim.model.flavors import FlavorError, flavor_of, parameters_of
from treeclaim.model.server_flavors import server_flavor

_MOST_FLAVORS = 1_000

_FLAVORS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": _MOST_FLAVORS,
    "items": {"type": "object"},
}

QUERIES = Answer(
    body=record(
        {
            "flavors": {
                "type": "array",
                "items": record({"name": STRING}, dict.fromkeys(("query", "error"), STRING)),
            }
        }
    ),
    dated=False,
)
"""The query of each flavor, or why there is none."""


@operation(
    "POST /treeclaim/flavors",
    policy="placement:allocation_candidates:list",
    answers=(QUERIES,),
    body=Versioned(record({"flavors": _FLAVORS}, {"for_servers": BOOLEAN})),
    most_values=MOST_VALUES_IN_BULK,
    needs_opt_in=True,
    only_reads=True,
)
def translate_flavors(call: Call) -> Reply:
    """Translate flavors to queries for candidates."""
    body = call.json()
    translate = _parameters_for_server if body.get("for_servers") else _parameters
    entries = call.deadline.watched(enumerate(body["flavors"]))
    return Reply(
        body={"flavors": [_translate(number, entry, translate) for number, entry in entries]}
    )


Parameters = tuple[tuple[str, str], ...]


def _parameters(entry: Mapping[str, Any]) -> Parameters:
    return parameters_of(flavor_of(entry, is_typed=False))


def _parameters_for_server(entry: Mapping[str, Any]) -> Parameters:
    return server_flavor(flavor_of(entry)).parameters


def _translate(
    number: int, entry: Mapping[str, Any], translate: Callable[[Mapping[str, Any]], Parameters]
) -> dict[str, str]:
    name = entry.get("name", entry.get("Name"))
    if not isinstance(name, str):
        raise bad_request(f"flavors[{number}]: 'name' is required, and is a text.")
    try:
        parameters = translate(entry)
    except FlavorError as error:
        return {"name": name, "error": str(error)}
    return {
        "name": name,
        "query": "&".join(
            f"{key}={quote(value, '=:,!_', errors='replace')}" for key, value in parameters
        ),
    }
