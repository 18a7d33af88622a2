# SPDX-License-Identifier: Apache-2.0
"""Schemas of queries for usages (contract page 80)."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import SHORT_TEXT, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Feature, Version


def usage_query(version: Version) -> Schema:
    """Return the schema of the query of GET /usages."""
    optional = {"user_id": SHORT_TEXT}
    if version.has(Feature.CONSUMER_TYPES):
        pattern = "^[A-Z0-9_]+$|^all|^unknown$"
        optional["consumer_type"] = {"type": "string", "pattern": pattern} | SHORT_TEXT
    return record({"project_id": SHORT_TEXT}, optional)


QUERY = Versioned(usage_query)
"""The query of GET /usages."""
