# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about aggregates (contract page 40)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import GENERATION, STRINGS, record

AGGREGATES = Answer(body=record({"aggregates": STRINGS} | GENERATION))
"""The aggregates of a provider."""
