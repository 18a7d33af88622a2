# SPDX-License-Identifier: Apache-2.0
"""Texts in responses: safe addresses, JSON as bytes, and HTTP dates."""

import json
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson

_OF_ADDRESSES = ":/?#[]@!$&'()*+,;=%-._~"
"""Characters that stay unencoded in a complete address: the reserved ones of RFC 3986, and `%`."""

_CACHED_DATES = 1_024
"""Cached dates, of 29 characters each: 100 KiB with their keys."""


def encode_address(url: str) -> str:
    """Percent-encode the invalid characters of an address for a header."""
    return quote(url.encode("utf-8", "surrogatepass"), safe=_OF_ADDRESSES)


def to_json(document: Any) -> bytes:
    """Serialize a document as JSON."""
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # orjson rejects integers above 64 bits, which a response may repeat from a request.
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")


now = time.time
"""Returns the seconds since the epoch."""


def format_http_date(seconds: float) -> str:
    """Format a time by RFC 1123, in GMT."""
    return _whole_second(int(seconds))


@lru_cache(_CACHED_DATES)
def _whole_second(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
