# SPDX-License-Identifier: Apache-2.0
"""Expiry of the certificates that a service uses, and warnings about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

_DAY = 24 * 3600
_WARNING_SECONDS = 30 * _DAY
"""Seconds before its end from which a certificate counts as expiring: automatic renewal happens earlier."""

_WARNING_SHARE = 1 / 3
"""The corresponding share of its lifetime, for certificates that are valid for days: ACME clients renew at two thirds
of the lifetime."""


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
    """The expiry of the certificates in a file at the time of reading it.

    Attributes:
        use: Use of the certificates.
        path: The file.
        at: Seconds since 1970: the first expiry in a chain, as a chain needs each of its certificates; the last
            expiry of the authorities, as one of them is enough.
        warned_from: Time from which a warning is due.
    """

    use: CertificateUse
    path: str
    at: float
    warned_from: float

    def warning(self, now: float) -> str | None:
        """Return a clause about an expiry that is past or near; None if neither."""
        if now < self.warned_from:
            return None
        date = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        if now >= self.at:
            return f"{_NAMES[self.use]} expired on {date}"
        remaining_seconds = self.at - now
        days, hours = int(remaining_seconds // _DAY), int(remaining_seconds // 3600)
        return f"{_NAMES[self.use]} expires on {date}, in {f'{days} days' if days > 1 else f'{hours} hours'}"


def read_expiry(use: CertificateUse, path: str | None) -> Expiry | None:
    """Read the expiry of the certificates of a PEM file; None if it cannot be read or has none."""
    if path is None:
        return None
    # A service without certificates does not load the library.
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

    try:
        certificates = load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        # The code that uses the file reports the error.
        return None
    periods = [
        (certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp())
        for certificate in certificates
    ]
    choose = max if use in _AUTHORITIES else min
    begin, end = choose(periods, key=lambda period: period[1])
    return Expiry(use, path, end, end - min(_WARNING_SECONDS, (end - begin) * _WARNING_SHARE))


def expiry_warnings(expiries: Sequence[Expiry], now: float) -> list[str]:
    """Return the warnings about certificates that have expired or expire soon."""
    return [text for expiry in expiries if (text := expiry.warning(now)) is not None]
