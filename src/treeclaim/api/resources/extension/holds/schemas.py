# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/holds takes."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import PROVIDER_KEY, SHORT_TEXT, mapping, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.allocations.schemas import KEPT_REQUEST, TERMS
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
        "until_before": filters.TIME,
    }
    return record({}, parameters | paging.PARAMETERS)


QUERY = Versioned(query)


_MOST = 1_000


def changed(_version: Version) -> Schema:
    """Return the schema of POST /treeclaim/holds."""
    return record({"holds": _many(record({}, TERMS))})


def kept(_version: Version) -> Schema:
    """Return the schema of POST /treeclaim/requests."""
    return record({"requests": _many(KEPT_REQUEST)})


def _many(value: Schema) -> Schema:
    """Return the schema of values for up to a thousand consumers."""
    return mapping(PROVIDER_KEY, value, least=1) | {"maxProperties": _MOST}
