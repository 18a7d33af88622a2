# SPDX-License-Identifier: Apache-2.0
"""The expiry of certificates is read from their files, and reported in time."""

import re
import subprocess
import time
from datetime import datetime
from functools import partial

import httpx
import pytest

from tests.service import fresh_database
from treeclaim.admin.app import make_admin_application
from treeclaim.admin.certificates import CertificateUse, Expiry, read_expiry
from treeclaim.admin.collectors import collect_expiries
from treeclaim.store import DatabaseSettings, Store

pytestmark = pytest.mark.usefixtures("openssl")

DAY = 24 * 3600.0


def run_openssl(*arguments):
    result = subprocess.run(
        ["openssl", *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return result.stdout


def made(folder, name, days, key=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")):
    """Create the file of a certificate that is valid for some days."""
    path = folder / f"{name}.pem"
    names = ["-keyout", folder / f"{name}.key", "-out", path, "-subj", f"/CN={name}"]
    run_openssl("req", "-x509", "-nodes", "-days", days, "-newkey", *key, *names)
    return path


def end_of(path):
    """Return when the first certificate of a file expires, as openssl reads it."""
    text = run_openssl("x509", "-in", path, "-noout", "-enddate", "-dateopt", "iso_8601")
    return datetime.fromisoformat(text.strip().partition("=")[2].replace(" ", "T", 1)).timestamp()


@pytest.mark.parametrize("days", [1, 90, 20_000])
@pytest.mark.parametrize("key", [("rsa:2048",), ("ed25519",)], ids="".join)
def test_expiry_equals_that_of_openssl(tmp_path, days, key):
    """Certificates encode years from 2050 on with four digits."""
    path = made(tmp_path, "one", days, key)
    expiry = read_expiry(CertificateUse.SERVER, str(path))
    assert expiry.at == end_of(path)
    assert expiry.warned_from == pytest.approx(expiry.at - min(30, days / 3) * DAY)
    combined = tmp_path / "with-text-and-key.pem"
    text = run_openssl("x509", "-in", path, "-text")
    combined.write_text("K\u00f6ln\n" + (tmp_path / "one.key").read_text() + text)
    assert read_expiry(CertificateUse.SERVER, str(combined)) == Expiry(
        CertificateUse.SERVER, str(combined), expiry.at, expiry.warned_from
    )


def test_chain_expires_first_and_authorities_last(tmp_path):
    short, long = made(tmp_path, "short", 2), made(tmp_path, "long", 200)
    for order in ((short, long), (long, short)):
        combined = tmp_path / "both.pem"
        combined.write_text("".join(path.read_text() for path in order))
        for use in (CertificateUse.SERVER, CertificateUse.KEYSTONE_CLIENT):
            assert read_expiry(use, str(combined)).at == end_of(short)
        for use in (CertificateUse.CLIENT_AUTHORITY, CertificateUse.KEYSTONE_AUTHORITY):
            assert read_expiry(use, str(combined)).at == end_of(long)


def test_invalid_certificate_file_has_no_expiry(tmp_path):
    path = tmp_path / "one.pem"
    whole = made(tmp_path, "whole", 1).read_text()
    body = whole.splitlines()[1]
    for text in ("", "words", whole.replace(body, ""), whole.replace(body, "%" * 64)):
        path.write_text(text)
        assert read_expiry(CertificateUse.SERVER, str(path)) is None
    for missing in (None, str(tmp_path), str(tmp_path / "nowhere")):
        assert read_expiry(CertificateUse.SERVER, missing) is None


def expiry(at, use=CertificateUse.SERVER):
    """Return an expiry that is reported for thirty days."""
    return Expiry(use, "/etc/one.pem", at, at - 30 * DAY)


DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"


@pytest.mark.parametrize(
    ("seconds_to_expiry", "expected"),
    [
        (31 * DAY, r"ready\n"),
        (12 * DAY + 60, rf"ready, but the server's certificate expires on {DATE}, in 12 days\n"),
        (5 * 3600 + 60, rf"ready, but the server's certificate expires on {DATE}, in 5 hours\n"),
        (-60, rf"ready, but the server's certificate expired on {DATE}\n"),
    ],
)
def test_ready_page_names_expiring_certificates(tmp_path, seconds_to_expiry, expected):
    store = Store(DatabaseSettings(fresh_database(tmp_path)))
    expiries = [
        expiry(time.time() + seconds_to_expiry),
        expiry(time.time() + 90 * DAY, CertificateUse.CLIENT_AUTHORITY),
    ]
    collectors = [partial(collect_expiries, expiries)]
    application = make_admin_application(store, collectors, None, expiries)
    transport = httpx.WSGITransport(application)
    with httpx.Client(transport=transport, base_url="http://admin") as client:
        ready = client.get("/ready")
        text = client.get("/metrics").text
    store.close()
    assert ready.status_code == 200
    assert re.fullmatch(expected, ready.text)
    assert "/etc" not in ready.text + text, "nobody was asked for a token"
    name = "treeclaim_certificate_expiry_timestamp_seconds"
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(name))
    assert {sample: float(value) for sample, value in values.items()} == {
        f'{name}{{use="{known_expiry.use}"}}': pytest.approx(known_expiry.at, abs=1)
        for known_expiry in expiries
    }
