# SPDX-License-Identifier: Apache-2.0
"""Negotiation by headers: the media type (contract page 00, section 3) and the microversion (page 10)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from falcon import InvalidMediaRange, InvalidMediaType, mediatypes

from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.model.microversions import (
    EXTENSION,
    EXTENSION_VERSION,
    MAXIMUM,
    MINIMUM,
    SERVICE_TYPE,
    Version,
)

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


_EXTENSION_VERSIONS = frozenset({"latest", EXTENSION_VERSION})
"""The way in which clients opt in to the extension (contract page 97, section 1)."""


class InvalidVersionError(Exception):
    """The version header cannot be read; carries the version as it was sent."""


class UnacceptableVersionError(Exception):
    """The version is outside the range served; carries the version as it was sent."""


class UnacceptableExtensionError(Exception):
    """The version of the extension, or the version combined with it, is not served; says which."""


@cache_short()
def negotiate(header: str | None) -> Version:
    """Return the version that a header asks for (contract page 10, section 2).

    Raises:
        InvalidVersionError, UnacceptableVersionError, UnacceptableExtensionError.
    """
    version = _placement_version(_last_mention(header or "", SERVICE_TYPE))
    extension = _last_mention(header or "", EXTENSION)
    if extension is None:
        return version
    if extension not in _EXTENSION_VERSIONS:
        raise UnacceptableExtensionError(f"{EXTENSION} {extension}")
    if version != MAXIMUM:
        raise UnacceptableExtensionError(
            f"{EXTENSION} {extension} needs {SERVICE_TYPE} {MAXIMUM}, not {version}"
        )
    return replace(version, is_extended=True)


@cache
def header_of(version: Version) -> str:
    """Return the header that tells a client which version it was answered at."""
    return version.header


def _placement_version(version_text: str | None) -> Version:
    if version_text is None:
        return MINIMUM
    if version_text == "latest":
        return MAXIMUM
    parts = version_text.split(".")
    try:
        major, minor = (int(part) for part in parts)
    except ValueError:
        raise InvalidVersionError(version_text) from None
    version = Version(major, minor)
    if not MINIMUM <= version <= MAXIMUM:
        raise UnacceptableVersionError(version_text)
    return version


def _last_mention(header: str, service_type: str) -> str | None:
    """Return the text behind the last mention of a service, None if it is not mentioned."""
    version_text = None
    for element in header.split(","):
        service, _, version = element.strip().partition(" ")
        if service.lower() == service_type and version.strip():
            version_text = version.strip()
    return version_text
