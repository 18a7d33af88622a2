# SPDX-License-Identifier: Apache-2.0
"""Schemas of aggregates (contract page 40)."""

from treeclaim.api.protocol.request.schemas import GENERATION, UUID, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Feature, Version


def aggregates(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/aggregates."""
    uuids: Schema = {"type": "array", "items": UUID, "uniqueItems": True}
    if not version.has(Feature.AGGREGATE_GENERATION):
        return uuids
    return record({"aggregates": uuids} | GENERATION)
