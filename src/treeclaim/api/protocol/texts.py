# SPDX-License-Identifier: Apache-2.0
"""Texts in answers: details of errors and addresses made safe; JSON as bytes; times as HTTP writes them."""

import json
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson

from treeclaim.model.names import one_line

LONGEST_DETAIL = 8_192
"""Characters of an error's text. The validator's wording, which shows schema and value, is mostly
below 4,000 characters, and what clients match is at its beginning."""

_OF_ADDRESSES = ":/?#[]@!$&'()*+,;=%-._~"
"""Reserved characters of RFC 3986, which stay as they are in an address that is ready."""

_REMEMBERED = 1_024
"""Seconds whose text is kept, of 29 characters each: 100 KiB with their keys."""


def detail_of(text: str) -> str:
    """Return the text of an error as it may be sent: cut, and in one line."""
    return one_line(text, longest=LONGEST_DETAIL)


def address_of(url: str) -> str:
    """Return an address as a header may have it: other characters are percent-encoded."""
    return quote(url.encode("utf-8", "surrogatepass"), safe=_OF_ADDRESSES)


def json_bytes(document: Any) -> bytes:
    """Write a document as JSON."""
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # It refuses more than 64 bits, which answers have where they repeat what a client sent.
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")


now = time.time
"""Returns the present time in seconds since the epoch."""


def http_date(seconds: float) -> str:
    """Write a time as RFC 1123 has it, in GMT."""
    return _whole_second(int(seconds))


@lru_cache(_REMEMBERED)
def _whole_second(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
