# SPDX-License-Identifier: Apache-2.0
"""Several orders beside each other, over several shuffles of the same arrivals, and a picture of that."""

import html
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treeclaim.forest.order.totals import totals_of
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.texts import one_line
from treeclaim.replay.files import Event, Events, ReplayError
from treeclaim.replay.run import TENTHS, Outcome, Reader, Run

_WIDTH, _HEIGHT, _LEFT, _TOP, _ROW = 640, 260, 60, 40, 18
_COLOURS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#495057", "#1864ab", "#997404")
_STYLE = (
    "text { font: 12px system-ui, sans-serif; fill: #1f2933 } .title { font-weight: 600 } "
    ".grid { stroke: #dee2e6 } polyline { fill: none; stroke-width: 2 } "
    ".paper { fill: #ffffff }"
)
_LONGEST = 60
"""Characters of the name of an order or a class."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be replayed.

    Attributes:
        forest: The cloud, where nothing is allocated.
        events: Arrivals and departures.
        mix: The mix that orders may name, and for which stranded amounts are reported.
        orders: As `order_by` has them; `none` is the usual order. Empty: as the queries say.
        seeds: How many shuffles of the arrivals; 0 for all events as they are.
        until: The share of the capacity of that class until which arrivals are drawn, in thousandths.
        asked_class: The class whose requested amounts are counted.
    """

    forest: Forest
    events: Events
    mix: Mix | None
    orders: Sequence[str]
    seeds: int
    until: int | None
    asked_class: str | None

    @property
    def last(self) -> int:
        """Return the last point, in tenths; 0 where that is the one that is reached."""
        return 0 if self.until is None else -(-self.until * TENTHS // 1_000)


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """What an order came to.

    Attributes:
        order: As it was given.
        capacity: The capacity of the cloud, by class.
        outcomes: The outcomes of each run.
    """

    order: str
    capacity: dict[str, int]
    outcomes: Sequence[Outcome]

    def document(self) -> dict[str, Any]:
        """Return what the page shows of an order."""
        tenths = sorted({tenth for outcome in self.outcomes for tenth in outcome.points})
        return {
            "order": self.order,
            "seeds": len(self.outcomes),
            "unplaced": _told([outcome.unplaced for outcome in self.outcomes]),
            "empty_trees": _told([outcome.empty_trees for outcome in self.outcomes]),
            "placements_per_second": _told(
                [outcome.arrivals / max(outcome.seconds, 1e-9) for outcome in self.outcomes]
            ),
            "points": [self._point(tenth) for tenth in tenths],
        }

    def _point(self, tenth: int) -> dict[str, Any]:
        allocated: dict[str, list[float]] = {}
        stranded: dict[str, list[float]] = {}
        for outcome in self.outcomes:
            for name, state in outcome.points.get(tenth, {}).items():
                whole = max(self.capacity[name], 1)
                allocated.setdefault(name, []).append(state.allocated / whole)
                if state.stranded is not None:
                    stranded.setdefault(name, []).append(state.stranded / whole)
        return {
            "asked": tenth / TENTHS,
            "allocated": {name: _told(values) for name, values in allocated.items()},
            "stranded": {name: _told(values) for name, values in stranded.items()},
        }


def _told(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean and standard deviation; null of one run."""
    spread = statistics.stdev(values) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "spread": spread}


def replayed(plan: Plan, told: Callable[[str, int], None]) -> Iterator[OrderOutcome]:
    """Replay by each order in turn; the arrivals of a seed are the same for all.

    Args:
        plan: What is to be replayed.
        told: Called with the order and the seed before each run.

    Raises:
        ReplayError: if a query cannot be read, or there is no such class.
    """
    if (
        plan.asked_class is not None
        and plan.asked_class not in plan.forest.catalogue.resource_classes
    ):
        raise ReplayError("no provider has the class of --of")
    for order in plan.orders or (None,):
        name = "as the queries say" if order is None else order
        outcomes = []
        capacity: dict[str, int] = {}
        for seed in range(max(plan.seeds, 1)):
            told(name, seed)
            reader = Reader(plan.events.source, plan.forest, order, plan.mix)
            run = Run(plan.forest, reader, plan.mix, plan.asked_class)
            capacity = run.capacity
            outcomes.append(run.of_all(_events(plan, seed, reader), plan.last))
        yield OrderOutcome(name, capacity, outcomes)


def _events(plan: Plan, seed: int, reader: Reader) -> Iterator[Event]:
    """Yield the events of a run; with seeds all arrivals once, shuffled, and then samples of them."""
    if not plan.seeds:
        yield from plan.events.events
        return
    arrivals = [event for event in plan.events.events if event.query is not None]
    draw = random.Random(seed)  # noqa: S311 - nothing is secret
    shuffled = arrivals.copy()
    draw.shuffle(shuffled)
    if plan.until is None or plan.asked_class is None:
        yield from shuffled
        return
    capacity = int(totals_of(plan.forest, plan.asked_class).some_capacity.sum())
    asked = 0
    if not any(reader.wanted(event).amounts.get(plan.asked_class) for event in arrivals):
        raise ReplayError("no arrival requests the class of --of")
    while True:
        event = shuffled.pop() if shuffled else draw.choice(arrivals)
        asked += reader.wanted(event).amounts.get(plan.asked_class, 0)
        if 1_000 * asked > plan.until * capacity:
            return
        yield event


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
