# SPDX-License-Identifier: Apache-2.0
"""A flavor of the cloud's own: asked of Nova, and made the question that Nova would ask."""

from dataclasses import replace
from typing import Any

from keystoneauth1.adapter import Adapter

from treeclaim.cli.cloud.compute import PAGE, document, page
from treeclaim.cli.output import CommandError, complain
from treeclaim.client import CandidateQuery, FlavorError
from treeclaim.client.requests.flavor_documents import flavor_of
from treeclaim.client.requests.server_flavors import ServerFlavor, server_flavor


def query_of_server_flavor(compute: Adapter, name: str) -> CandidateQuery:
    """Return what Nova asks for a flavor; what it does not ask Placement is told.

    Args:
        compute: What talks to the compute API.
        name: Of the flavor, or its id.

    Raises:
        CommandError: if there is none, or it cannot be read.
    """
    told = _flavor(compute, name)
    specs = document(compute, f"/flavors/{told['id']}/os-extra_specs", "extra_specs")
    try:
        flavor = replace(flavor_of(told, is_typed=False), extra_specs=specs["extra_specs"])
        asked = server_flavor(flavor)
    except FlavorError as error:
        raise CommandError(f"flavor {name} cannot be read: {error}") from error
    tell_unasked(asked)
    return asked.query


def tell_unasked(asked: ServerFlavor) -> None:
    """Tell of what Nova does not ask Placement."""
    if asked.unasked:
        unasked = ", ".join(asked.unasked)
        complain(f"Nova judges these itself, they are no part of the question: {unasked}")


def _flavor(compute: Adapter, name: str) -> dict[str, Any]:
    """Return the flavor with a name or an id, public or not; an id comes first."""
    query = {"is_public": "None", "limit": str(PAGE)}
    named = None
    while True:
        flavors, marker = page(compute, "/flavors/detail", "flavors", query)
        for flavor in flavors:
            if flavor["id"] == name:
                return flavor
            if flavor["name"] == name:
                named = flavor
        if marker is None:
            break
        query["marker"] = marker
    if named is None:
        raise CommandError(f"Nova has no flavor {name!r}")
    return named
