# SPDX-License-Identifier: Apache-2.0
"""Negotiation of the microversion (contract page 10, section 2; page 97, section 1)."""

import pytest

from treeclaim.api.protocol.negotiation import (
    InvalidVersionError,
    UnacceptableExtensionError,
    UnacceptableVersionError,
    negotiate,
)
from treeclaim.model.microversions import MAXIMUM, MINIMUM, Version


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, MINIMUM),
        ("", MINIMUM),
        ("compute 2.1", MINIMUM),
        ("placement", MINIMUM),
        ("placement 1.0", Version(1, 0)),
        ("placement 1.10", Version(1, 10)),
        ("PLACEMENT 1.39", MAXIMUM),
        ("placement latest", MAXIMUM),
        ("compute 2.1, placement 1.7", Version(1, 7)),
        ("placement 1.7, placement 1.8", Version(1, 8)),
        ("  placement   1.9  ", Version(1, 9)),
    ],
)
def test_a_header_asks_for_a_version(header, version):
    assert negotiate(header) == version


@pytest.mark.parametrize("asked", ["1", "1.2.3", "one.two", "1.", ".1", "1.x", "-"])
def test_what_is_no_version_is_invalid(asked):
    with pytest.raises(InvalidVersionError) as found:
        negotiate(f"placement {asked}")
    assert str(found.value) == asked


@pytest.mark.parametrize("asked", ["0.9", "1.40", "2.0", "1.-1"])
def test_versions_beyond_the_range_are_unacceptable(asked):
    with pytest.raises(UnacceptableVersionError) as found:
        negotiate(f"placement {asked}")
    assert str(found.value) == asked


def test_the_extension_is_asked_for_beside_the_newest_version():
    for asked in ("1.0", "latest"):
        assert negotiate(f"placement latest, treeclaim {asked}").is_extended
    assert not negotiate("placement latest").is_extended


@pytest.mark.parametrize(
    "header",
    [
        "placement latest, treeclaim 1.99",
        "placement latest, treeclaim 1.1",
        "placement 1.38, treeclaim 1.0",
        "treeclaim 1.0",
    ],
)
def test_other_versions_of_the_extension_are_unacceptable(header):
    with pytest.raises(UnacceptableExtensionError, match=r"treeclaim 1\.\d+"):
        negotiate(header)
