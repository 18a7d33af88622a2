# SPDX-License-Identifier: Apache-2.0
"""Content negotiation by the Accept header (contract page 00, section 3)."""

from collections.abc import Sequence
from functools import lru_cache

from falcon import InvalidMediaRange, InvalidMediaType, mediatypes

JSON = "application/json"


@lru_cache(maxsize=256)
def best_match(accept: str | None, offers: Sequence[str]) -> str | None:
    """Return the offer that an Accept header likes best, None if none is acceptable.

    A missing header, `*/*`, and a header that cannot be read count as `application/json`. On
    equal quality the earlier offer is chosen.
    """
    if not accept or accept.strip() in ("", "*/*"):
        accept = JSON
    best, quality = None, 0.0
    for offer in offers:
        try:
            found = mediatypes.quality(offer, accept)
        except (ValueError, InvalidMediaRange, InvalidMediaType):
            return JSON if JSON in offers else None
        if found > quality:
            best, quality = offer, found
    return best
