# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about traits (contract page 50)."""

from http import HTTPStatus

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import GENERATION, STRINGS, record

TRAITS = Answer(body=record({"traits": STRINGS}))
"""Names of traits."""

PROVIDER_TRAITS = Answer(body=record({"traits": STRINGS} | GENERATION))
"""The traits of a provider."""

FOUND = Answer(HTTPStatus.NO_CONTENT)
"""The trait exists."""

CREATED = Answer(HTTPStatus.CREATED, located=True)
"""A trait was created."""

EXISTED = Answer(HTTPStatus.NO_CONTENT, located=True)
"""The trait was there."""
