# SPDX-License-Identifier: Apache-2.0
"""Negotiation of the media type by the header Accept (contract page 00, section 3)."""

from collections.abc import Sequence

from falcon import InvalidMediaRange, InvalidMediaType, mediatypes

from treeclaim.api.protocol.short_cache import cache_short

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_LONGEST = 2_048
"""Most characters of a parsed header; browsers send some 150. The library caches parsed headers, and is slow for
thousands of parameters."""


@cache_short()
def select_media_type(accept: str | None, offers: Sequence[str]) -> str | None:
    """Return the first of the offers that an Accept header prefers; None if no offer is acceptable.

    A missing, invalid or too long header, and `*/*`, count as `application/json`.
    """
    if not accept or len(accept) > _LONGEST or accept.strip() in ("", "*/*"):
        accept = JSON
    best_offer, best_quality = None, 0.0
    for offer in offers:
        try:
            offer_quality = mediatypes.quality(offer, accept)
        except (ValueError, InvalidMediaRange, InvalidMediaType):
            return JSON if JSON in offers else None
        if offer_quality > best_quality:
            best_offer, best_quality = offer, offer_quality
    return best_offer
