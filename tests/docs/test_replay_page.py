# SPDX-License-Identifier: Apache-2.0
"""The page about orders on a public trace tells what was measured."""

import json

from tools.replay import KEEP, ORDERS, PAGE, PUBLISHED, RESULTS, page_of

RESULT = json.loads(RESULTS.read_text())


def test_the_page_is_made_of_the_results():
    assert PAGE.read_text() == page_of(RESULT)


def test_keep_beats_what_is_published_and_every_other_order():
    for trace, orders in RESULT["traces"].items():
        shares = {
            one["order"]: 100 * one["points"][-1]["allocated"]["CUSTOM_GPU_MILLI"]["mean"]
            for one in orders
        }
        assert set(shares) <= set(ORDERS)
        assert max(shares, key=shares.get) == KEEP
        assert shares[KEEP] > max(PUBLISHED[trace].values())
