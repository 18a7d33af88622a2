# SPDX-License-Identifier: Apache-2.0
"""Expiry of the certificates that a service uses, and warnings about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

_DAY = 24 * 3600
_WARNING_SECONDS = 30 * _DAY
"""Seconds before its expiry from which a certificate counts as expiring; automatic renewal happens earlier."""

_WARNING_SHARE = 1 / 3
"""The remaining share of a short lifetime from which a certificate counts as expiring: ACME clients renew earlier."""


class CertificateUse(StrEnum):
    """Uses of a certificate; the values are labels of a metric."""

    SERVER = "server"
    CLIENT_AUTHORITY = "client_authority"
    KEYSTONE_CLIENT = "keystone_client"
    KEYSTONE_AUTHORITY = "keystone_authority"


_AUTHORITIES = frozenset({CertificateUse.CLIENT_AUTHORITY, CertificateUse.KEYSTONE_AUTHORITY})
_NAMES = {
    CertificateUse.SERVER: "the server's certificate",
    CertificateUse.CLIENT_AUTHORITY: "the authority of clients' certificates",
    CertificateUse.KEYSTONE_CLIENT: "the client certificate for Keystone",
    CertificateUse.KEYSTONE_AUTHORITY: "the authority of Keystone's certificate",
}


@dataclass(frozen=True, slots=True)
class Expiry:
    """The expiry of the certificates in a file when it was read.

    Attributes:
        at: POSIX timestamp of the first expiry in a chain, which needs all its certificates, or of the last expiry
            of authorities, of which one is enough.
        warned_from: POSIX timestamp from which a warning is due.
    """

    use: CertificateUse
    path: str
    at: float
    warned_from: float

    def describe_warning(self, now: float) -> str | None:
        """Return a clause about a past or near expiry, else None."""
        if now < self.warned_from:
            return None
        date = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        if now >= self.at:
            return f"{_NAMES[self.use]} expired on {date}"
        remaining_seconds = self.at - now
        days, hours = int(remaining_seconds // _DAY), int(remaining_seconds // 3600)
        return f"{_NAMES[self.use]} expires on {date}, in {f'{days} days' if days > 1 else f'{hours} hours'}"


def read_expiry(use: CertificateUse, path: str | None) -> Expiry | None:
    """Read the expiry of the certificates in a PEM file; None if it is unreadable or has none."""
    if path is None:
        return None
    # A service without certificates saves this import.
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

    try:
        certificates = load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        # The user of the file reports the error.
        return None
    periods = [
        (certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp())
        for certificate in certificates
    ]
    choose = max if use in _AUTHORITIES else min
    begin, end = choose(periods, key=lambda period: period[1])
    return Expiry(use, path, end, end - min(_WARNING_SECONDS, (end - begin) * _WARNING_SHARE))


def list_expiry_warnings(expiries: Sequence[Expiry], now: float) -> list[str]:
    """Return the warnings about certificates that have expired or expire soon."""
    return [text for expiry in expiries if (text := expiry.describe_warning(now)) is not None]
