# SPDX-License-Identifier: Apache-2.0
"""Values that handlers read themselves, as patterns for the API description (see `Forms`)."""

from treeclaim.api.protocol.request.wording import Schema

UUID = r"(urn:uuid:)?\{?(-?[0-9a-fA-F]){32}\}?"
"""Contract page 00, section 12."""


def text(pattern: str) -> Schema:
    """Return the schema of a text that is as a whole of a form."""
    return {"type": "string", "pattern": f"^{pattern}$"}


def listed(element: str) -> str:
    """Return the pattern of elements separated by commas."""
    return f"{element}(,{element})*"


ANY_UUID: Schema = text(UUID) | {
    "description": "A uuid in any spelling: dashes, braces, `urn:uuid:` and case do not matter."
}
"""JSON Schema's own format admits only the spelling with dashes."""

MEMBER_OF: Schema = text(f"!?({UUID}|in:{listed(UUID)})")
"""A value of `member_of` (contract page 90, section 1)."""
