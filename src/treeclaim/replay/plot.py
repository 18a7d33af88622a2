# SPDX-License-Identifier: Apache-2.0
"""A picture of a replay: what was allocated of each class, over what was asked, by order."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from treeclaim.model.texts import one_line

_WIDTH, _HEIGHT, _LEFT, _TOP, _ROW = 640, 260, 60, 40, 18
_COLOURS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#495057", "#1864ab", "#997404")
_STYLE = (
    "text { font: 12px system-ui, sans-serif; fill: #1f2933 } .title { font-weight: 600 } "
    ".grid { stroke: #dee2e6 } polyline { fill: none; stroke-width: 2 } "
    ".paper { fill: #ffffff }"
)
_LONGEST = 60
"""Characters of the name of an order or a class."""


def plotted(orders: Sequence[Mapping[str, Any]]) -> str:
    """Return an SVG document: a panel for each class, a line for each order."""
    names = sorted(
        {name for order in orders for point in order["points"] for name in point["allocated"]}
    )
    most = max((point["asked"] for order in orders for point in order["points"]), default=1.0)
    panel = _HEIGHT + _TOP + _ROW * (len(orders) + 2)
    parts = []
    for number, name in enumerate(names):
        parts += _panel(orders, name, most, number * panel)
    width, height = _WIDTH + 2 * _LEFT, panel * len(names)
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">'
    )
    paper = f'<rect class="paper" width="{width}" height="{height}"/>'
    return "\n".join([begin, f"<style>{_STYLE}</style>", paper, *parts, "</svg>"]) + "\n"


def _panel(orders: Sequence[Mapping[str, Any]], name: str, most: float, top: int) -> list[str]:
    base = top + _TOP + _HEIGHT
    parts = [_text(_LEFT, top + _TOP - 12, f"{name}: share allocated", "title")]
    for tenth in range(0, 11, 2):
        y = base - _HEIGHT * tenth / 10
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}"/>')
        parts.append(_text(_LEFT - 42, y + 4, f"{10 * tenth} %"))
    for number in range(5):
        share = most * number / 4
        parts.append(_text(_LEFT + _WIDTH * number / 4 - 12, base + 16, f"{100 * share:.0f} %"))
    for number, order in enumerate(orders):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(0.0, 0.0)] + [
            (point["asked"], point["allocated"][name]["mean"])
            for point in order["points"]
            if name in point["allocated"]
        ]
        line = " ".join(
            f"{_LEFT + _WIDTH * asked / most:.1f},{base - _HEIGHT * share:.1f}"
            for asked, share in points
        )
        y = base + _ROW * (number + 2)
        parts.append(f'<polyline points="{line}" stroke="{colour}"/>')
        parts.append(f'<rect x="{_LEFT}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        last = points[-1][1]
        parts.append(_text(_LEFT + 16, y, f"{order['order']} ({100 * last:.2f} %)"))
    return parts


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    shown = html.escape(one_line(text, longest=_LONGEST))
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{shown}</text>'
