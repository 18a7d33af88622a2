# SPDX-License-Identifier: Apache-2.0
"""Schemas of the answers about usages (contract page 80)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import AMOUNTS, GENERATION, mapping, record

PROVIDER = Answer(body=record(GENERATION | {"usages": AMOUNTS}))
"""How much of each inventory of a provider is used."""

PROJECT = Answer(body=record({"usages": mapping(".*", AMOUNTS)}))
"""What the consumers of a project hold, by their type."""
