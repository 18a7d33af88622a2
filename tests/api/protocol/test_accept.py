# SPDX-License-Identifier: Apache-2.0
"""Content negotiation (contract page 00, section 3)."""

import pytest

from treeclaim.api.protocol import negotiation
from treeclaim.api.protocol.negotiation import JSON, best_match

OFFERS = (JSON, "text/html", "text/plain")


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (None, JSON),
        ("", JSON),
        ("  ", JSON),
        ("*/*", JSON),
        (" */* ", JSON),
        (JSON, JSON),
        ("text/html", "text/html"),
        ("text/*", "text/html"),
        ("text/plain, text/html", "text/html"),
        ("text/plain, text/html;q=0.5", "text/plain"),
        (f"text/plain;q=0.2, {JSON};q=0.1", "text/plain"),
        (f"text/html, {JSON};q=0", "text/html"),
        ("image/png", None),
        (f"{JSON};q=0", None),
        ("no media type", JSON),
        ("text/html;q=high", JSON),
    ],
)
def test_the_preferred_offer_is_chosen(header, chosen):
    assert best_match(header, OFFERS) == chosen


def test_malformed_header_matches_nothing_without_json():
    assert best_match("no media type", ("text/html",)) is None


def test_overlong_header_selects_json():
    longest = "text/html;level=" + "1" * (negotiation._LONGEST - len("text/html;level="))
    assert best_match(longest, OFFERS) != JSON
    assert best_match(f"{longest}1", OFFERS) == JSON
