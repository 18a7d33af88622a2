# SPDX-License-Identifier: Apache-2.0
"""The bound of the Accept header; `media-types.yaml` has the other rules (contract page 00, section 3)."""

from treeclaim.api.protocol import negotiation
from treeclaim.api.protocol.negotiation import JSON, best_match

OFFERS = (JSON, "text/html", "text/plain")


def test_overlong_header_selects_json():
    longest = "text/html;level=" + "1" * (negotiation._LONGEST - len("text/html;level="))
    assert best_match(longest, OFFERS) != JSON
    assert best_match(f"{longest}1", OFFERS) == JSON
