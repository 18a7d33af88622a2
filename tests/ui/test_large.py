# SPDX-License-Identifier: Apache-2.0
"""The pages with five thousand trees of seven (contract page 99, section 7)."""

import pytest

from tests.ui.worlds import HOPELESS, QUESTION
from treeclaim.client import Client

pytestmark = pytest.mark.long


def test_pages_work_with_5000_trees(visit, large_cloud):
    with Client(large_cloud, "admin") as client:
        [host] = client.providers(name="host-4321")
    visitor = visit(large_cloud)
    page = visitor.open(f"#/tree/{host['uuid']}")
    page.get_by_role("heading", name="host-4321", level=1).wait_for()
    page = visitor.go("#/tree")
    page.get_by_label("Find").fill("host-4321")
    page.get_by_role("link", name="host-4321").click()
    page.get_by_role("heading", name="host-4321", level=1).wait_for()
    page = visitor.go(f"#/ask?{QUESTION}&limit=1000")
    visitor.see("1,000 candidates")
    page.locator(".candidate .bar").first.wait_for()
    page = visitor.go(f"#/ask?{HOPELESS}")
    visitor.see("None of 5,000 trees matches.")
    page = visitor.go("#/consumers?project_id=bench")
    visitor.see("100 consumers on this page")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Previous").wait_for()
    page = visitor.go("#/cloud?view=table&name=host-4321")
    visitor.see("1 tree found")
    page = visitor.go(f"#/ask?{QUESTION}&limit=10&if_more=50:host-1&if_without=host-2")
    visitor.see("10 candidates")
    page = visitor.go("#/survival?domains=aggregates")
    visitor.see("It is unknown whether 50 of 50 aggregates may be lost")
    page = visitor.go("#/plan?goal=empty&hosts=host-4321")
    page.locator(".before-after").wait_for()
    page = visitor.go("#/audit")
    page.locator(".findings, .failure").first.wait_for()
    page = visitor.go("#/fit")
    page.get_by_role("button", name="Count").click()
    page.locator(".fit tbody tr, .failure").first.wait_for()


def test_end_key_moves_to_the_last_tree(visit, large_cloud):
    visitor = visit(large_cloud)
    page = visitor.open()
    visitor.see("5,000 trees")
    page.locator(".map-box").focus()
    page.keyboard.press("End")
    page.wait_for_function(
        "() => document.querySelector('.map-told').textContent.startsWith('host-4999')"
    )
