# SPDX-License-Identifier: Apache-2.0
"""Schemas of traits (contract page 50)."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import GENERATION, SHORT_TEXT, STRING, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Version


def provider_traits(_version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/traits."""
    return record({"traits": {"type": "array", "items": SHORT_TEXT}} | GENERATION)


def trait_query(_version: Version) -> Schema:
    """Return the schema of the query of GET /traits."""
    return record({}, {"name": STRING, "associated": STRING})


QUERY = Versioned(trait_query)
"""The query of GET /traits."""
