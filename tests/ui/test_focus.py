# SPDX-License-Identifier: Apache-2.0
"""The ring around what has the focus: on all that can have it, whole, in a colour that is seen."""

import io

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.long

ROOM = 6
"""Pixels around an element in which its ring is, and within it."""

LEAST_SHARE = 0.6
"""Pixels of each side; corners are round."""

LEAST_CONTRAST = 3.0
"""Contrast of the ring with its surroundings (WCAG 2.2, 1.4.11 and 2.4.13)."""

FOCUSABLE = (
    "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0'], h1, main"
)

KINDS = """
selector => {
  window.kinds = new Map();
  for (const one of document.querySelectorAll(selector)) {
    const name = `${one.closest(".table-box, nav, .switch, .totals")?.className ?? ""} ${one.tagName}.${one.className} ${one.type ?? ""}`;
    if (one.checkVisibility() && !window.kinds.has(name)) window.kinds.set(name, one);
  }
  return [...window.kinds.keys()];
}
"""
"""The kinds of elements that can have the focus, by what they are and in what."""

FOCUS = """
kind => {
  const element = window.kinds.get(kind);
  element.focus({ focusVisible: true });
  element.scrollIntoView({ block: "center", inline: "nearest" });
  const { left, top, right, bottom } = element.getBoundingClientRect();
  return document.activeElement === element && [left, top, right, bottom].map(Math.round);
}
"""


def picture(page):
    """The luminance of each pixel of the window."""
    shot = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    parts = np.asarray(shot) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def faults_of(page, kind):
    """The sides of an element at which the focus is not seen."""
    box = page.evaluate(FOCUS, kind)
    assert box, f"{kind} does not take the focus"
    after = picture(page)
    page.evaluate("document.activeElement.blur()")
    before = picture(page)
    contrast = (np.maximum(after, before) + 0.05) / (np.minimum(after, before) + 0.05)
    seen = contrast >= LEAST_CONTRAST
    height, width = seen.shape
    left, top, right, bottom = box
    rows = slice(max(top, 0), min(bottom, height))
    columns = slice(max(left, 0), min(right, width))
    sides = {"left": seen[rows, around(left)].any(1), "right": seen[rows, around(right)].any(1)}
    # What is higher than the window has its other sides elsewhere.
    if top > ROOM:
        sides["top"] = seen[around(top), columns].any(0)
    if bottom < height - ROOM:
        sides["bottom"] = seen[around(bottom), columns].any(0)
    return [side for side, line in sides.items() if line.mean() < LEAST_SHARE]


def around(edge):
    """The pixels beside an edge on which a ring may be."""
    return slice(max(edge - ROOM, 0), edge + ROOM)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_focusable_elements_show_a_full_focus_ring(visit, cloud, routes, scheme):
    how = {"color_scheme": scheme, "reduced_motion": "reduce"}
    visitor = visit(cloud, viewport={"width": 700, "height": 500}, **how)
    faults = {}
    for route, shown in routes.items():
        page = visitor.go(route)
        page.locator(shown).first.wait_for()
        page.wait_for_function("() => !document.querySelector('.busy')")
        for kind in page.evaluate(KINDS, FOCUSABLE):
            if kind not in faults:
                faults[kind] = faults_of(page, kind)
    assert len(faults) > len(routes)
    assert {kind: sides for kind, sides in faults.items() if sides} == {}


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
