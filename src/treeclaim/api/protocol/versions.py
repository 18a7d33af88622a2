# SPDX-License-Identifier: Apache-2.0
"""Negotiation of the microversion by a header (contract page 10, section 2)."""

from dataclasses import replace
from http import HTTPStatus

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.model.microversions import (
    EXTENSION,
    EXTENSION_VERSION,
    MAXIMUM,
    MINIMUM,
    SERVICE_TYPE,
    Version,
)
from treeclaim.model.names import quote_value

VERSION_HEADER = "OpenStack-API-Version"

_EXTENSION_VERSIONS = frozenset({"latest", EXTENSION_VERSION})
"""Versions that opt in to the extension (contract page 97, section 1)."""


@cache_short()
def negotiate_version(header: str | None) -> Version:
    """Return the version that a header selects.

    Raises:
        ApiError: 400 for an invalid version; 406 for an unsupported version.
    """
    version = _parse_placement_version(_find_last_version(header or "", SERVICE_TYPE))
    extension = _find_last_version(header or "", EXTENSION)
    if extension is None:
        return version
    served_range = (EXTENSION_VERSION, EXTENSION_VERSION)
    if extension not in _EXTENSION_VERSIONS:
        raise _make_unacceptable_error(f"{EXTENSION} {extension}", served_range)
    if version != MAXIMUM:
        combination = f"{EXTENSION} {extension} needs {SERVICE_TYPE} {MAXIMUM}, not {version}"
        raise _make_unacceptable_error(combination, served_range)
    return replace(version, is_extended=True)


def _parse_placement_version(version_text: str | None) -> Version:
    if version_text is None:
        return MINIMUM
    if version_text == "latest":
        return MAXIMUM
    parts = version_text.split(".")
    try:
        major, minor = (int(part) for part in parts)
    except ValueError:
        raise bad_request(f"invalid version string: {quote_value(version_text)}") from None
    version = Version(major, minor)
    if not MINIMUM <= version <= MAXIMUM:
        raise _make_unacceptable_error(version_text, (str(MINIMUM), str(MAXIMUM)))
    return version


def _make_unacceptable_error(text: str, served_range: tuple[str, str]) -> ApiError:
    lowest_version, highest_version = served_range
    return ApiError(
        HTTPStatus.NOT_ACCEPTABLE,
        f"Unacceptable version header: {quote_value(text)}",
        members={"max_version": highest_version, "min_version": lowest_version},
    )


def _find_last_version(header: str, service_type: str) -> str | None:
    """Return the version in the last element for a service; None without such an element."""
    version_text = None
    for element in header.split(","):
        service, _, version = element.strip().partition(" ")
        if service.lower() == service_type and version.strip():
            version_text = version.strip()
    return version_text
