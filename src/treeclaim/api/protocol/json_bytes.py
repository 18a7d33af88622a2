# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON of answers and of errors, with integers of any length."""

import json
from typing import Any

import orjson


def json_bytes(document: Any) -> bytes:
    """Write a document as JSON."""
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # It refuses more than 64 bits, which answers have where they repeat what a client sent.
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
