# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about resource classes (contract page 60)."""

from http import HTTPStatus

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import LINKS, STRING, record

_CLASS = record({"name": STRING, "links": LINKS})

CLASS = Answer(body=_CLASS)
"""A resource class."""

CLASSES = Answer(body=record({"resource_classes": {"type": "array", "items": _CLASS}}))
"""All resource classes."""

CREATED = Answer(HTTPStatus.CREATED, dated=False, located=True)
"""A class was created."""

EXISTED = Answer(HTTPStatus.NO_CONTENT, dated=False, located=True)
"""The class was there."""
