# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/changes takes."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.extension import filters
from treeclaim.model.extension import cursor_text
from treeclaim.model.microversions import Version

PATH = "/treeclaim/changes"

LONGEST_WAIT = 60
"""Seconds (contract page 99, section 4)."""

MOST_TREES = 2_000
"""Uuids of `in_tree`: as many as have room in the longest head of a request, and some more."""


def query(_version: Version) -> Schema:
    """Return the schema of the query."""
    return record(
        {},
        {
            "since": {"type": "string", "maxLength": cursor_text.LONGEST},
            "in_tree": filters.UUIDS | {"maxLength": len("in:") + 37 * MOST_TREES - 1},
            "wait": {"type": "string", "pattern": "^([0-9]|[1-5][0-9]|60)$"},
        },
    )


QUERY = Versioned(query)
