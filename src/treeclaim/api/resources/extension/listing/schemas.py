# SPDX-License-Identifier: Apache-2.0
"""What GET /treeclaim/providers takes."""

from treeclaim.api.protocol.operations import Versioned
from treeclaim.api.protocol.request.schemas import STRING, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.extension import filters, paging
from treeclaim.model.microversions import Version

PATH = "/treeclaim/providers"

INCLUDES = {
    "inventories": "placement:resource_providers:inventories:list",
    "usages": "placement:resource_providers:usages",
    "traits": "placement:resource_providers:traits:list",
    "aggregates": "placement:resource_providers:aggregates:list",
    "allocations": "placement:resource_providers:allocations:list",
}
"""What may be included, and the rule of its own URL (contract page 98, section 1)."""

_INCLUDE = f"({'|'.join(INCLUDES)})"


def query(_version: Version) -> Schema:
    """Return the schema of the query."""
    parameters: dict[str, Schema] = {
        "name": STRING,
        "uuid": filters.UUIDS,
        "member_of": STRING,
        "resources": STRING,
        "in_tree": filters.UUIDS,
        "required": STRING,
        "include": {"type": "string", "pattern": f"^{_INCLUDE}(,{_INCLUDE})*$"},
    }
    return record({}, parameters | paging.PARAMETERS)


QUERY = Versioned(query)
