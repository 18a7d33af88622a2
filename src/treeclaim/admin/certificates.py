# SPDX-License-Identifier: Apache-2.0
"""Expiry of the certificates that a service uses, and warnings about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

_DAY = 24 * 3600
_WARNING_SECONDS = 30 * _DAY
"""The time before its end from which a certificate counts as expiring: automatic renewal is done by then."""

_WARNING_SHARE = 1 / 3
"""The same as a part of its lifetime, for certificates that live for days: ACME's clients and
others renew at two thirds of it."""


class CertificateUse(StrEnum):
    """Uses of a certificate; the words are values of a metric's label."""

    SERVER = "server"
    CLIENT_AUTHORITY = "client_authority"
    KEYSTONE_CLIENT = "keystone_client"
    KEYSTONE_AUTHORITY = "keystone_authority"


_AUTHORITIES = frozenset({CertificateUse.CLIENT_AUTHORITY, CertificateUse.KEYSTONE_AUTHORITY})
_WORDS = {
    CertificateUse.SERVER: "the server's certificate",
    CertificateUse.CLIENT_AUTHORITY: "the authority of clients' certificates",
    CertificateUse.KEYSTONE_CLIENT: "the client certificate for Keystone",
    CertificateUse.KEYSTONE_AUTHORITY: "the authority of Keystone's certificate",
}


@dataclass(frozen=True, slots=True)
class Expiry:
    """The expiry of the certificates of a file when it was read.

    Attributes:
        use: What they are for.
        path: The file.
        at: Seconds since 1970: the first end in a chain, the last of the authorities, as a chain needs
            each of its certificates, and one authority is enough.
        warned_from: From when on that is soon.
    """

    use: CertificateUse
    path: str
    at: float
    warned_from: float

    def words(self, now: float) -> str | None:
        """Say in half a sentence that it has expired or soon will; None if neither."""
        if now < self.warned_from:
            return None
        date = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        if now >= self.at:
            return f"{_WORDS[self.use]} expired on {date}"
        remaining_seconds = self.at - now
        days, hours = int(remaining_seconds // _DAY), int(remaining_seconds // 3600)
        return f"{_WORDS[self.use]} expires on {date}, in {f'{days} days' if days > 1 else f'{hours} hours'}"


def expiry_of(use: CertificateUse, path: str | None) -> Expiry | None:
    """Read when the certificates of a PEM file expire; None without a file, or one that has none in it."""
    if path is None:
        return None
    # Only a service that has certificates needs the library.
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

    try:
        certificates = load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        # The code that needs the file reports what is wrong with it.
        return None
    periods = [
        (certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp())
        for certificate in certificates
    ]
    choose = max if use in _AUTHORITIES else min
    begin, end = choose(periods, key=lambda period: period[1])
    return Expiry(use, path, end, end - min(_WARNING_SECONDS, (end - begin) * _WARNING_SHARE))


def warnings_of(expiries: Sequence[Expiry], now: float) -> list[str]:
    """Return the words about those that are expired or soon will be."""
    return [words for expiry in expiries if (words := expiry.words(now)) is not None]
