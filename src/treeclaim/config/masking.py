# SPDX-License-Identifier: Apache-2.0
"""Values of options without their secrets."""

import re

HIDDEN = "****"

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_PASSWORD = re.compile(r"^[^/?\[]*:(?!\d+(?:[/?]|$))")
"""Where there is no @: what follows a colon is a port, or a password whose host was forgotten."""

_CREDENTIALS = re.compile(r"([a-z][a-z0-9+.-]*://)[^\s,]*@", re.IGNORECASE)


def without_credentials(text: str) -> str:
    """Return a text in which no URL has user or password; other parts of it stay."""
    return _CREDENTIALS.sub(rf"\1{HIDDEN}@", text)


def database_place(text: str) -> str:
    """Return what of a database's URL is no secret: driver, host, port, name of the database.

    A password may have any character in it, also those that end it for SQLAlchemy unless they are
    written as %40 and the like; so all up to the last @ is hidden. Parameters may have a password too.
    """
    scheme = _ADDRESS.match(text)
    if scheme is None:
        return HIDDEN
    if scheme[1].startswith("sqlite"):
        # A path, which has no credentials before it.
        return text.partition("?")[0]
    credentials, at, place = text[scheme.end() :].rpartition("@")
    if "?" in credentials or (not at and _PASSWORD.search(place)):
        # Who knows whether that begins the parameters, or is in the password?
        return f"{scheme[1]}://{HIDDEN}"
    return f"{scheme[1]}://{HIDDEN + at if credentials else ''}{place.partition('?')[0]}"
