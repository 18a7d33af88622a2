# SPDX-License-Identifier: Apache-2.0
"""Assumptions as a switch on the pages Ask and Fit (contract page 101, section 1)."""

from urllib.parse import quote

import pytest

from tests.ui.changes import uuid_of
from tests.ui.worlds import HOPELESS
from treeclaim.client import Client

pytestmark = pytest.mark.long

GPUS = "resources=VGPU:4"
"""A query with a candidate on each of the ten hosts."""


def question(query, **rows):
    """The address of a question that takes something for granted."""
    parameters = [f"if_{kind}={quote(text)}" for kind, text in rows.items()]
    return f"#/ask?{'&'.join([query, *parameters])}"


def open_question(visitor, route):
    """Open a query, and return the text about its answer."""
    page = visitor.open(route)
    page.locator("#found-title").wait_for()
    return page.locator("#found-title").inner_text()


def test_switch_toggles_results_with_and_without_assumptions(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open(f"#/ask?{GPUS}")
    visitor.see("10 candidates from 10 trees")
    page.get_by_role("button", name="What if …").click()
    page.get_by_label("Add an assumption").select_option("without the host")
    page.get_by_label("without the host", exact=True).fill("host-3")
    visitor.see("changed since the last search")
    page.get_by_role("button", name="Ask", exact=True).click()
    visitor.see("9 candidates from 9 trees")
    visitor.see("Without host-3")
    assert page.url.endswith(f"#/ask?{GPUS}&if_without=host-3")
    page.reload()
    visitor.see("9 candidates from 9 trees")
    assert page.get_by_label("without the host", exact=True).input_value() == "host-3"
    page.get_by_role("button", name="Current cloud").click()
    visitor.see("10 candidates from 10 trees")
    page.get_by_role("button", name="What if …").click()
    visitor.see("9 candidates from 9 trees")


def test_assumed_hosts_are_drawn_as_copies_of_a_tree(visit, cloud):
    visitor = visit(cloud)
    answer = open_question(visitor, question("resources=FPGA:1&limit=100", more="2:host-1"))
    assert answer.startswith("24 candidates from 12 trees")
    visitor.see("2 more hosts like host-1")
    page = visitor.page
    page.get_by_role("button", name="Show 16 more").click()
    last = page.locator(".candidate").last
    last.get_by_role("link", name="host-1+2").wait_for()
    assert "numa1" in last.inner_text()


def test_assumed_releases_are_shown_as_free(visit, cloud):
    with Client(cloud, "admin") as client:
        host = uuid_of(client, "host-2_numa0")
        [consumer] = client.get(f"/resource_providers/{host}/allocations")["allocations"]
    query = f"resources=VCPU:32&in_tree={host}"
    visitor = visit(cloud)
    # Without it, the other NUMA node is the only one.
    assert open_question(visitor, f"#/ask?{query}").startswith("1 candidate ")
    assert open_question(visitor, question(query, release=consumer)).startswith("2 candidates")
    visitor.see("1 consumer released")
    assert "0 of 32 used" in visitor.page.locator(".candidate").first.inner_text()


ONE_VGPU = "resources=VGPU:1"


@pytest.mark.parametrize(
    ("query", "rows", "texts"),
    [
        (ONE_VGPU, {"place": f"8:{GPUS}"}, ["2 candidates", "8 of 8 placed: resources=VGPU:4"]),
        (
            ONE_VGPU,
            {"place": f"12:{GPUS}"},
            ["No candidate", "10 of 12 placed", "None of 12 trees and"],
        ),
        (GPUS, {"without": "nowhere"}, ["There is no host 'nowhere'."]),
        (GPUS, {"more": "9000:host-1"}, ["More than 10000 new providers are too many."]),
        (GPUS, {"more": "host-1"}, ["'' is not a number from 1 to 999999."]),
        (GPUS, {"place": "0:resources=VGPU:1"}, ["'0' is not a number from 1 to 999999."]),
        (GPUS, {"release": "host-1"}, ["The server refused this"]),
        (
            "resources=FPGA:1&required=CUSTOM_SUCH",
            {"without": "host-2"},
            ["The server refused this"],
        ),
    ],
)
def test_assumptions_are_counted_or_refused(visit, cloud, query, rows, texts):
    visitor = visit(cloud)
    visitor.open(question(query, **rows))
    for text in texts:
        visitor.see(text)


def test_advice_and_plan_links_keep_the_assumptions(visit, cloud):
    visitor = visit(cloud)
    open_question(visitor, question(HOPELESS, without="host-2"))
    ways = visitor.page.locator(".ways a")
    assert "if_without=host-2" in ways.get_attribute("href")


def test_flavor_counts_apply_the_assumptions(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open("#/fit?if_more=3:host-1&if_place=2:resources%3DVGPU:4")
    page.get_by_label("Flavors").fill("gpu: resources=VGPU:4")
    page.get_by_role("button", name="Count").click()
    row = page.locator(".fit tbody tr")
    row.wait_for()
    assert row.locator("td.number").first.inner_text() == "11"
    visitor.see("2 of 2 placed")
    href = row.get_by_role("link").get_attribute("href")
    assert href.endswith("if_more=3:host-1&if_place=2:resources%3DVGPU:4")
    page.get_by_role("button", name="Current cloud").click()
    page.get_by_role("button", name="Count").click()
    page.wait_for_function("() => location.hash === '#/fit'")
    assert row.locator("td.number").first.inner_text() == "10"
