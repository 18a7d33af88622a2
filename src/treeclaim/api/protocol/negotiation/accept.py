# SPDX-License-Identifier: Apache-2.0
"""Content negotiation by the Accept header (contract page 00, section 3)."""

from collections.abc import Sequence

from falcon import InvalidMediaRange, InvalidMediaType, mediatypes

from treeclaim.api.protocol.remembering import remembering_short

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_LONGEST = 2_048
"""Characters of a header that is read. Browsers send some 150. The library remembers what it has
read, and takes long for thousands of parameters."""

_REMEMBERED, _LONGEST_REMEMBERED = 256, 256
"""Headers, and characters of each: 64 KiB."""


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
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
            found = mediatypes.quality(offer, accept)
        except (ValueError, InvalidMediaRange, InvalidMediaType):
            return JSON if JSON in offers else None
        if found > quality:
            best, quality = offer, found
    return best
