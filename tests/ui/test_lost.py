# SPDX-License-Identifier: Apache-2.0
"""Addresses that lead nowhere, and tokens that cannot be sent."""

import uuid

import pytest

from tests.ui.changes import claimed
from treeclaim.client import Client

pytestmark = pytest.mark.slow

UNKNOWN = "00000000-0000-0000-0000-0000000000aa"
LOST = {
    "#/nosuch": ("There is no page at this address", "The cloud"),
    "#/tree/%": ("There is no page at this address", "The cloud"),
    "#/consumers/%E0%A4%A": ("There is no page at this address", "The cloud"),
    "#/%": ("There is no page at this address", "The cloud"),
    "#/tree/x/y": ("There is no page at this address", "The cloud"),
    "#/cloud/x": ("There is no page at this address", "The cloud"),
    "#/ask/x?resources=VCPU:1": ("There is no page at this address", "The cloud"),
    "#/audit/x": ("There is no page at this address", "The cloud"),
    f"#/tree/{UNKNOWN}": (f"No provider has the uuid {UNKNOWN}", "All trees"),
    "#/tree/nonsense": ("No provider has the uuid nonsense", "All trees"),
    f"#/consumers/{UNKNOWN}": ("No consumer passes these filters", "All consumers"),
    "#/consumers/nonsense": ("", "All consumers"),
    "#/consumers?constructor=1": ("The server refused this", "All consumers"),
    "#/ask?constructor=1": ("'constructor'", "Begin with an example"),
    "#/plan?goal=empty&hosts=nowhere": ("There is no host 'nowhere'.", None),
    "#/plan?goal=fit&query=resources=VCPU:1&amount=x": ("'x' is no number.", None),
    "#/plan?goal=keep&mix=none": ("The server refused this", None),
    "#/ask?resources=NO_SUCH_CLASS:1": ("NO_SUCH_CLASS", "Begin with an example"),
}
"""Messages by addresses, and the link that leads back; None for a form that stays."""


@pytest.mark.parametrize("route", LOST)
def test_missing_target_shows_a_message_and_a_link_back(visit, cloud, route):
    words, back = LOST[route]
    page = visit(cloud).open(route)
    first = page.locator(".empty, .failure").first
    first.wait_for()
    assert words in first.inner_text()
    if back is None:
        return
    first.get_by_role("link", name=back).click()
    page.wait_for_function("route => location.hash !== route", arg=route)
    first.wait_for(state="detached")
    page.locator("main h1").wait_for()
    page.wait_for_function("() => !document.querySelector('.busy')")
    assert page.locator(".empty, .failure").count() == 0


def test_class_without_inventory_is_labelled(visit, cloud):
    page = visit(cloud).open("#/cloud?class=NO_SUCH")
    chosen = page.get_by_label("Colour by").locator("option:checked")
    page.locator(".map-told").wait_for()
    assert chosen.inner_text() == "NO_SUCH: no inventory"


TOKENS = ["ädmin", "admi\u0144", "admin\u200b1", "admin\U0001f511", "ad\u00a0min", "  "]


def test_unsendable_token_is_not_sent(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open(token=None)
    field = page.get_by_label("Token")
    page.wait_for_function("() => document.querySelector('.hint')")
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    for token in TOKENS:
        field.fill(token)
        page.keyboard.press("Enter")
        assert field.evaluate("field => field.validity.patternMismatch"), token
    assert (sent, page.evaluate("sessionStorage.length")) == ([], 0)
    field.fill(" admin ")
    page.keyboard.press("Enter")
    visitor.see("12 trees")


def test_audit_findings_link_to_their_subjects(visit, cloud):
    with Client(cloud, "admin") as client:
        uuid_by_name = {row["name"]: row["uuid"] for row in client.providers()}
        empty = str(uuid.uuid4())
        client.call(
            "POST", "/resource_providers", json={"uuid": empty, "name": "HOST-2.example.org"}
        )
        amounts = {uuid_by_name[f"host-{number}_numa1"]: {"VCPU": 1} for number in (2, 3)}
        with claimed(client, amounts) as consumer:
            visitor = visit(cloud)
            page = visitor.open("#/audit")
            page.locator(".findings").wait_for()
            about = {
                # Each kind, with the object of its rows and the heading of that object's page.
                "Usage above the capacity": [(uuid_by_name["host-9_numa0"], "host-9")],
                "Consumers in several trees: unfinished moves": [
                    (consumer, "Consumers"),
                    (uuid_by_name["host-2"], "host-2"),
                    (uuid_by_name["host-3"], "host-3"),
                ],
                "Hosts that exist twice under similar names": [
                    (uuid_by_name["host-2"], "host-2"),
                    (empty, "HOST-2.example.org"),
                ],
                "Trees without inventory": [(empty, "HOST-2.example.org")],
            }
            for kind, subjects in about.items():
                for subject, heading in subjects:
                    page = visitor.go("#/audit")
                    table = page.get_by_role("region", name=kind)
                    table.locator("table").wait_for()
                    table.get_by_role("link", name=subject).click()
                    page.get_by_role("heading", name=heading, level=1).wait_for()
                    page.wait_for_function("() => !document.querySelector('.busy')")
                    assert page.locator(".empty, .failure").count() == 0
        client.call("DELETE", f"/resource_providers/{empty}")
