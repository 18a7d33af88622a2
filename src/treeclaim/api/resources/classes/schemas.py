# SPDX-License-Identifier: Apache-2.0
"""Schemas of resource classes (contract page 60)."""

from treeclaim.api.protocol.request.schemas import CUSTOM_NAME, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Version


def resource_class(_version: Version) -> Schema:
    """Return the schema of POST /resource_classes, and of the renaming PUT."""
    return record({"name": CUSTOM_NAME})
