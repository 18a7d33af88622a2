# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/flavors (contract page 97, section 4.1)."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import Body, list_length
from treeclaim.api.protocol.request.schemas import Shape
from treeclaim.model.flavors import FlavorError, make_query_parameters, parse_flavor
from treeclaim.model.server_flavors import translate_flavor

_MOST_FLAVORS = 1_000


class FlavorsBody(Body):
    """Flavors in the format of `openstack flavor list --long -f json`.

    Attributes:
        as_nova: Whether to return the queries that Nova sends for servers, for the page Fit (`docs/pages.md`). Unknown
            members and misspelt extra specs are then errors.
    """

    flavors: Annotated[tuple[dict[str, Any], ...], list_length(1, _MOST_FLAVORS)]
    as_nova: bool = False


QUERIES: Shape = {"flavors": [{"name": str, "query?": str, "error?": str}]}
"""The query of each flavor, or the reason why it has none."""


@operation(
    "POST /treeclaim/flavors",
    policy="placement:allocation_candidates:list",
    shows=QUERIES,
    has_cache_headers=False,
    is_read_only=True,
)
def translate_flavors(call: Call, body: FlavorsBody) -> Answer:
    """Translate flavors to queries for candidates."""
    entries = call.deadline.each(enumerate(body.flavors))
    return {
        "flavors": [_translate(number, entry, as_nova=body.as_nova) for number, entry in entries]
    }


def _translate(number: int, entry: Mapping[str, Any], *, as_nova: bool) -> dict[str, str]:
    name = entry.get("name", entry.get("Name"))
    if not isinstance(name, str):
        raise bad_request(f"flavors[{number}]: 'name' is required, and must be a text.")
    try:
        flavor = parse_flavor(entry, is_typed=as_nova)
        parameters = (
            translate_flavor(flavor).parameters if as_nova else make_query_parameters(flavor)
        )
    except FlavorError as error:
        return {"name": name, "error": str(error)}
    return {
        "name": name,
        "query": "&".join(
            f"{key}={quote(value, '=:,!_', errors='replace')}" for key, value in parameters
        ),
    }
