# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/allocations takes."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import SHORT_TEXT, STRING, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.extension import filters, paging
from treeclaim.model.microversions import ExtensionFeature, Version

PATH = "/treeclaim/allocations"

REQUESTS = "requests"
"""What may be included: the requests that consumers were placed by."""


def query(version: Version) -> Schema:
    """Return the schema of the query."""
    parameters: dict[str, Schema] = {
        "consumer": filters.UUIDS,
        "project_id": SHORT_TEXT,
        "user_id": SHORT_TEXT,
        "consumer_type": {"type": "string", "pattern": "^([A-Z0-9_]{1,255}|unknown)$"},
        "provider": filters.UUIDS,
        "in_tree": filters.UUIDS,
        "member_of": STRING,
        "resource_class": filters.CLASSES,
    }
    if version.brings(ExtensionFeature.HOLDS):
        parameters["include"] = {"type": "string", "enum": [REQUESTS]}
    return record({}, parameters | paging.PARAMETERS)


QUERY = Versioned(query)
