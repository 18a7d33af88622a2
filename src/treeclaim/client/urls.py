# SPDX-License-Identifier: Apache-2.0
"""Texts in URLs. What a shell gives need not be UTF-8; its bytes are sent as they are."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

_NOT_UTF_8 = "surrogateescape"
"""How Python keeps bytes of arguments that are not UTF-8."""


def escaped(text: str, safe: str = "") -> str:
    """Return a text as a part of a URL; characters in `safe` stay as they are."""
    return quote(text, safe=safe, errors=_NOT_UTF_8)


def query_string(parameters: Mapping[str, str] | Sequence[tuple[str, str]], safe: str = "") -> str:
    """Return the query string of parameters; characters in `safe` stay as they are."""
    return urlencode(parameters, safe=safe, errors=_NOT_UTF_8)
