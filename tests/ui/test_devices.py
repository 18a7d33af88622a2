# SPDX-License-Identifier: Apache-2.0
"""Consumption and conditions of providers on the pages (contract page 102)."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.ui.changes import changed, claimed, conditioned, put_part, uuid_of

pytestmark = pytest.mark.slow

REASON = '<img src=x onerror="document.title=1">\u202e\n& <b>disk</b>'
SHOWN_REASON = '<img src=x onerror="document.title=1">\\u202e\\n& <b>disk</b>'


def test_tree_shows_consumption_and_consuming_inventories(visit, cloud, client):
    for name in ("CUSTOM_SLICE", "CUSTOM_MEMORY", "CUSTOM_PROFILE"):
        client.call("PUT", f"/resource_classes/{name}")
    card, profile = uuid_of(client, "host-1_numa1"), uuid_of(client, "host-1_numa1_other")
    stock = {"CUSTOM_SLICE": {"total": 7}, "CUSTOM_MEMORY": {"total": 8}}
    put_part(client, card, "inventories", stock)
    consumes = [
        {"provider": card, "resource_class": "CUSTOM_SLICE", "amount": 3},
        {"provider": card, "resource_class": "CUSTOM_MEMORY", "amount": 4},
    ]
    consuming = {"CUSTOM_PROFILE": {"total": 2, "consumes": consumes}}
    put_part(client, profile, "inventories", consuming)
    page = visit(cloud).open(f"#/tree/{card}")
    inventory = page.locator(f"#provider-{card} li", has_text="CUSTOM_SLICE").first
    inventory.wait_for()
    takes = page.locator(f"#provider-{profile} .consumed-part")
    assert takes.all_inner_texts() == [
        "each takes 4 CUSTOM_MEMORY and 3 CUSTOM_SLICE of host-1_numa1"
    ]
    # An unused inventory takes nothing.
    assert inventory.locator(".consumed-part").count() == 0
    with claimed(client, {profile: {"CUSTOM_PROFILE": 2}}):
        page.get_by_role("button", name="Refresh").click()
        words = "6 consumed by CUSTOM_PROFILE of host-1_numa1_other"
        inventory.get_by_text(words).wait_for()
        assert "6 of 7 used" in inventory.inner_text()


def test_copied_host_consumes_its_own_inventory(visit, cloud, client):
    client.call("PUT", "/resource_classes/CUSTOM_PART")
    card = uuid_of(client, "host-9_numa1_device")
    consumes = [{"provider": card, "resource_class": "VGPU", "amount": 2}]
    stock = {"VGPU": {"total": 4}, "CUSTOM_PART": {"total": 9, "consumes": consumes}}
    with changed(client, card, "inventories", stock):
        visitor = visit(cloud)
        visitor.open("#/ask?resources=CUSTOM_PART:1&if_more=1:host-9")
        visitor.see("2 candidates")


def test_map_marks_trees_with_conditions_by_name(visit, cloud, client):
    visitor = visit(cloud)
    requests = []
    visitor.page.on("request", lambda request: requests.append(request.url))
    page = visitor.open()
    visitor.see("live: changes come as they are made")
    page.wait_for_load_state("load")
    legend = page.get_by_label("Colours of the map")
    assert "condition" not in legend.inner_text()
    assert page.locator(".square .sign").count() == 0
    with conditioned(client, "host-0_numa1_device", "CLEANING", "FAILING", reason=REASON):
        # The sign appears with the changes, and the legend explains signs if there are any.
        legend.get_by_text("a provider has a condition").wait_for()
        page.locator(".square .sign").wait_for()
        page.locator(".map-box").focus()
        result = page.get_by_role("status").filter(has_text="host-0:").inner_text()
        for key in ("CLEANING", "FAILING"):
            words = f"host-0_numa1_device: {key} (no_new): {SHOWN_REASON}"
            assert words in result
            assert words in page.locator(".map-box").get_attribute("title")
        page.keyboard.press("ArrowRight")
        page.get_by_role("status").filter(has_text="host-1:").wait_for()
        assert not page.locator(".map-box").get_attribute("title")
    legend.get_by_text("a provider has a condition").wait_for(state="detached")
    queries = [parse_qs(urlsplit(url).query) for url in requests if "include=conditions" in url]
    # All once, and then those that changed.
    assert ["uuid" in query for query in queries].count(False) == 1
    assert not any("in_tree" in query for query in queries)


def test_table_shows_conditions(visit, cloud, client):
    with (
        conditioned(client, "host-2", "LEAVING", effect="leave", reason="bought & sold"),
        conditioned(client, "host-2_numa0", "USED", on_use=True),
        conditioned(client, "host-2_numa1", "USED", on_use=True),
    ):
        page = visit(cloud).open("#/cloud?view=table&name=host-2")
        signed = page.locator("table.trees .signed")
        signed.wait_for()
        assert signed.locator(".keys > span").all_inner_texts() == ["LEAVING", "USED"]
        words = (
            "host-2: LEAVING (leave): bought & sold; 2 providers: USED (no_new, once it is used)"
        )
        assert signed.get_attribute("title") == words
        assert signed.locator(".sr").text_content() == f"Conditions: {words}"
