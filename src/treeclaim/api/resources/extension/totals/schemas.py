# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/totals takes."""

from treeclaim.api.protocol.microversions import Version
from treeclaim.api.protocol.schemas import STRING, record
from treeclaim.api.protocol.wording import Schema
from treeclaim.api.resources.extension import filters, paging
from treeclaim.forest.listing.totals import By


def query(_version: Version) -> Schema:
    """Return the schema of the query."""
    parameters: dict[str, Schema] = {
        "in_tree": filters.UUIDS,
        "member_of": STRING,
        "required": STRING,
        "resource_class": filters.CLASSES,
        "by": {"type": "string", "enum": [kind.value for kind in By]},
    }
    return record({}, parameters | paging.PARAMETERS)
