# SPDX-License-Identifier: Apache-2.0
"""Negotiation of the media type by the header Accept (contract page 00, section 3)."""

from collections.abc import Sequence

from falcon import InvalidMediaRange, InvalidMediaType, mediatypes

from treeclaim.api.protocol.short_cache import cache_short

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_LONGEST = 2_048
"""Characters of a header that is read. Browsers send some 150. The library remembers what it has
read, and takes long for thousands of parameters."""


@cache_short()
def best_match(accept: str | None, offers: Sequence[str]) -> str | None:
    """Return the offer that an Accept header prefers, None if none is acceptable.

    A missing header, `*/*`, and a header that cannot be read, or is too long, count as `application/json`. On
    equal quality the earlier offer is chosen.
    """
    if not accept or len(accept) > _LONGEST or accept.strip() in ("", "*/*"):
        accept = JSON
    best, quality = None, 0.0
    for offer in offers:
        try:
            worth = mediatypes.quality(offer, accept)
        except (ValueError, InvalidMediaRange, InvalidMediaType):
            return JSON if JSON in offers else None
        if worth > quality:
            best, quality = offer, worth
    return best
