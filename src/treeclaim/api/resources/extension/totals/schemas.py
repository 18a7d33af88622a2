# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/totals takes."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import STRING, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.extension import filters, paging
from treeclaim.api.resources.planning.given import GIVEN
from treeclaim.forest.listing.parts import By
from treeclaim.model.microversions import Version

PATH = "/treeclaim/totals"


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


QUERY = Versioned(query)


def given(_version: Version) -> Schema:
    """Return the schema of the body of a POST."""
    return record({"given": GIVEN})
