# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about the service itself."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import record

VERSIONS = Answer(body=record({"versions": {"type": "array"}}))
"""Which versions are served."""

DESCRIPTION = Answer(body={"type": "object"}, dated=False)
"""The description of the API."""
