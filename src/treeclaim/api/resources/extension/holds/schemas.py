# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/holds takes."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import SHORT_TEXT, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.extension import filters, paging
from treeclaim.model.microversions import Version

PATH = "/treeclaim/holds"


def query(_version: Version) -> Schema:
    """Return the schema of the query."""
    parameters: dict[str, Schema] = {
        "project_id": SHORT_TEXT,
        "drawable_by": SHORT_TEXT,
        "provider": filters.UUIDS,
        "in_tree": filters.UUIDS,
        "until_before": {"type": "string", "maxLength": 64},
    }
    return record({}, parameters | paging.PARAMETERS)


QUERY = Versioned(query)
