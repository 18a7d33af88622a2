# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about resource providers (contract page 20)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import INTEGER, LINKS, STRING, TEXT_OR_NULL, record

_PROVIDER = record(
    {
        "uuid": STRING,
        "name": STRING,
        "generation": INTEGER,
        "links": LINKS,
        "parent_provider_uuid": TEXT_OR_NULL,
        "root_provider_uuid": STRING,
    }
)

PROVIDER = Answer(body=_PROVIDER)
"""A provider."""

CREATED = Answer(body=_PROVIDER, located=True)
"""A provider that was created."""

PROVIDERS = Answer(body=record({"resource_providers": {"type": "array", "items": _PROVIDER}}))
"""A list of providers."""
