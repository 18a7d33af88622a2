# SPDX-License-Identifier: Apache-2.0
"""Names of the types in WSGI's `start_response` (PEP 3333).

A layer defines such a function for each request, and Python works out its annotations each time. To
make `Callable[[bytes], object]` anew took as long as the rest of a layer.
"""

from collections.abc import Callable

Headers = list[tuple[str, str]]
"""Names and values of the headers of an answer."""

Write = Callable[[bytes], object]
"""What `start_response` returns; nobody should use it."""
