# SPDX-License-Identifier: Apache-2.0
"""Names and identifiers: valid spellings, and their normal forms."""

import re
import uuid

CUSTOM_PREFIX = "CUSTOM_"
"""Begins the name of every trait and resource class that is not a standard one."""

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
"""A provider with this trait lends its inventory to the trees in its aggregates."""

UNKNOWN_TYPE = "unknown"
"""Stands for the type of consumers that never got one (contract page 80, section 2.2)."""

FIRST_CUSTOM_CLASS_ID = 10_000
"""Resource classes with a smaller id are standard ones (contract page 60, section 1)."""

MAXIMUM_NAME_LENGTH = 255

NAMESPACE = uuid.UUID("6f1d6c1e-3c5e-5c55-9a3b-6e8f1f0a7c11")
"""Names in a file become uuids in this namespace, the same ones each time."""

_CUSTOM_NAME = re.compile(r"CUSTOM_[A-Z0-9_]+")
_DIGITS = re.compile(r"[0-9a-fA-F]{32}")
_NORMALISED_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def is_custom_name(name: str) -> bool:
    """Tell whether a name may be given to a custom trait or resource class."""
    return len(name) <= MAXIMUM_NAME_LENGTH and _CUSTOM_NAME.fullmatch(name) is not None


def normalised_uuid(text: str) -> str | None:
    """Return the lower-case dashed form of any spelling of a uuid, or None if it is none.

    Accepts what `uuid.UUID` accepts: dashes optional, braces, `urn:uuid:`, upper case
    (contract page 00, section 12).
    """
    # Lists of a thousand are usual in queries, and nearly all are as they should be.
    if _NORMALISED_UUID.fullmatch(text):
        return text
    try:
        parsed_uuid = uuid.UUID(text)
    except ValueError:
        return None
    # It reads the digits as `int` does, which lets blanks, newlines and underscores through.
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return str(parsed_uuid) if _DIGITS.fullmatch(digits) else None


def aggregate_uuid(name: str) -> str:
    """Return the uuid of an aggregate, which a file may name in words."""
    # What a shell gives need not be UTF-8; nothing has such a name.
    text = name.encode(errors="replace").decode()
    return normalised_uuid(name) or str(uuid.uuid5(NAMESPACE, f"aggregate {text}"))
