# SPDX-License-Identifier: Apache-2.0
"""Accessibility of the pages: keyboard, screen readers, light and dark colours, phones."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.long

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": dict(PHONE, color_scheme="light"),
}
"""Colours do not depend on the width."""
STILL = {"reduced_motion": "reduce"}

FOCUSABLE = (
    "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0'], h1, main"
)


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_no_violation(visit, cloud, routes, look):
    visitor = visit(cloud, **dict(LOOKS[look], **STILL))
    violations = []
    for route, shown in routes.items():
        # Each address is opened by itself once.
        page = visitor.open(route) if look == "light" else visitor.go(route)
        page.locator(shown).first.wait_for()
        violations += violations_of(page, route)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), route
    page = visitor.open(token=None)
    page.get_by_label("Token").wait_for()
    violations += violations_of(page, "the token")
    assert not violations, "\n".join(map(str, violations))


def violations_of(page, route):
    return [
        (route, violation["id"], node["target"], node["failureSummary"])
        for violation in Axe().run(page).response["violations"]
        for node in violation["nodes"]
    ]


def test_map_is_navigable_by_keys_and_screen_reader(visit, cloud):
    page = visit(cloud).open("#/cloud?class=VCPU")
    page.locator(".map-box").focus()
    result = page.locator(".map-told[role=status]")
    page.wait_for_function(
        "() => document.querySelector('.map-told').textContent.includes('host-0')"
    )
    page.keyboard.press("ArrowRight")
    assert result.inner_text() == "host-1: 6 % of VCPU used"
    page.keyboard.press("End")
    assert result.inner_text() == "pool: no inventory of VCPU"
    page.keyboard.press("ArrowUp")
    assert result.inner_text() != "pool: no inventory of VCPU"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="host-0", level=1).wait_for()


def test_query_can_be_sent_with_the_keyboard_only(visit, cloud):
    page = visit(cloud).open(token=None)
    page.get_by_label("Token").wait_for()
    page.wait_for_function("() => document.activeElement.id === 'token'")
    page.keyboard.press("Control+A")
    page.keyboard.type("admin")
    page.keyboard.press("Enter")
    page.get_by_text("12 trees").first.wait_for()
    tab_to(page, "Ask")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ask", level=1).wait_for()
    # The focus is on the new page, so the form is a few keys away.
    tab_to(page, "Amount 1 of Unsuffixed group")
    page.keyboard.press("Control+A")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    page.locator(".candidate").first.wait_for()
    assert "resources=VCPU:7" in page.url


def tab_to(page, name):
    """Press Tab until something has the focus; also sees that the focus can be seen."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "() => { const e = document.activeElement; const style = getComputedStyle(e);"
            " const isBody = e === document.body;"
            " return [e.getAttribute('aria-label') ?? e.textContent, isBody || style.outlineStyle]; }"
        )
        assert focused[1] != "none", focused
        if focused[0] == name:
            return
    raise AssertionError(f"{name} is not reached by the Tab key")


def test_skip_link_leads_to_the_content(visit, cloud):
    page = visit(cloud).open()
    page.get_by_text("12 trees").first.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert "#/cloud" in page.url


MISSED = """
selector => [...document.querySelectorAll(selector)]
  .filter((one) => one.checkVisibility() && one.tabIndex >= 0 && !window.visited.has(one))
  .map((one) => one.outerHTML.slice(0, 100))
"""
"""Return the elements that can have the focus and did not get it."""


def test_tab_key_reaches_every_control(visit, cloud, routes):
    visitor = visit(cloud, reduced_motion="reduce")
    for route, shown in routes.items():
        page = visitor.open(route)
        page.locator(shown).first.wait_for()
        page.wait_for_function("() => !document.querySelector('.busy')")
        page.evaluate(
            "() => { window.visited = new Set();"
            " addEventListener('focusin', ({ target }) => window.visited.add(target)); }"
        )
        for _ in range(len(page.evaluate(MISSED, FOCUSABLE)) + 3):
            page.keyboard.press("Tab")
        assert page.evaluate(MISSED, FOCUSABLE) == [], route
