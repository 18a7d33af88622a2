# SPDX-License-Identifier: Apache-2.0
"""The schema of a reshape (contract page 75)."""

from treeclaim.api.protocol.request.schemas import PROVIDER_KEY, mapping, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.allocations.schemas import reshaped_claims
from treeclaim.api.resources.inventories.schemas import all_inventories
from treeclaim.model.microversions import Version


def reshape(version: Version) -> Schema:
    """Return the schema of POST /reshaper."""
    return record(
        {
            "inventories": mapping(PROVIDER_KEY, all_inventories(version), least=1),
            "allocations": reshaped_claims(version),
        }
    )
