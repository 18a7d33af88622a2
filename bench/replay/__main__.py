# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.replay CLOUD EVENTS --of CLASS`: compare orders on arrivals of one's own, or of a public trace."""

import argparse
import json
import random
import statistics
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.clients.endpoint import Endpoint
from bench.replay.files import (
    GPU,
    MIX_NAME,
    Event,
    Mix,
    ReplayError,
    read_events,
    read_mix,
    read_nodes,
    read_pods,
    sum_requested_amounts,
)
from bench.rows import OURS
from tests import peer
from treeclaim.client import Client, ClientError
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import Topology, TopologyError, read_topology

_DESCRIPTION = """\
Start a service on an empty database for each order, load a cloud, place arrivals one after the other, and print what
each order allocates. EVENTS has a line of JSON for each event:
{"at": 17.0, "place": "ID", "query": "resources=VCPU:4"} or {"at": 99.0, "release": "ID"}.
"""

_OWNER = {"project_id": "replay", "user_id": "replay", "consumer_type": "INSTANCE"}

NUMBERS = ("unplaced", "empty_trees", "placements_per_second")


@dataclass(frozen=True, slots=True)
class Plan:
    """A cloud, its arrivals and departures, and how they are drawn.

    Attributes:
        topology: The cloud, where nothing is allocated.
        events: Arrivals and departures.
        mix: The name and the body of a mix, for orders and for stranded amounts.
        counted_class: The class whose requested amounts are summed.
        seeds: Shuffles of the arrivals, a run for each; 0 for the events in their order.
        until: Arrivals are drawn until they request this share of the capacity of the counted class.
    """

    topology: Topology
    events: Sequence[Event]
    mix: tuple[str, Mix] | None
    counted_class: str
    seeds: int
    until: float | None

    def draw_events(self, seed: int, capacity: int) -> Iterator[Event]:
        """Yield the events of a run; with seeds, shuffled arrivals once each, then random arrivals."""
        if not self.seeds:
            yield from self.events
            return
        arrivals = [event for event in self.events if event.query is not None]
        draw = random.Random(seed)
        shuffled_arrivals = arrivals.copy()
        draw.shuffle(shuffled_arrivals)
        if self.until is None:
            yield from shuffled_arrivals
            return
        amounts = sum_requested_amounts(arrivals, self.counted_class)
        if not any(amounts.values()):
            raise ReplayError(f"no arrival requests {self.counted_class}")
        remaining_amount = self.until * capacity
        while True:
            event = shuffled_arrivals.pop() if shuffled_arrivals else draw.choice(arrivals)
            remaining_amount -= amounts[event.query or ""]
            if remaining_amount < 0:
                return
            yield event


class Run:
    """Places the consumers of one run in a cloud that is empty at first."""

    def __init__(self, client: Client, endpoint: Endpoint, plan: Plan, order: str | None) -> None:
        self._client = client
        self._endpoint = endpoint
        self._plan = plan
        self._order = order
        self._consumers_by_event: dict[str, str] = {}
        self._unplaced_count = 0
        self._arrivals = 0

    def run(self, seed: int) -> dict[str, Any]:
        """Load the cloud, run arrivals and departures in their order, and return the outcome.

        Raises:
            ReplayError: if the service refuses a query, the order or the mix.
        """
        client, plan = self._client, self._plan
        apply_topology(client, plan.topology)
        if plan.mix is not None:
            name, body = plan.mix
            try:
                client.call("PUT", f"/treeclaim/mixes/{quote(name)}", body)
            except ClientError as error:
                raise ReplayError(f"mix {name}: {error}") from error
        capacity = (
            client.get("/treeclaim/totals")["totals"].get(plan.counted_class, {}).get("capacity")
        )
        if not capacity:
            raise ReplayError(f"the cloud has nothing of {plan.counted_class}")
        begin = time.monotonic()
        self._follow(plan.draw_events(seed, capacity))
        seconds = time.monotonic() - begin
        parameters = {} if plan.mix is None else {"mix": plan.mix[0]}
        totals = client.get("/treeclaim/totals", **parameters)["totals"]
        parts = client.rows("/treeclaim/totals", "parts", by="tree")
        return {
            "unplaced": self._unplaced_count,
            "empty_trees": sum(
                not any(sums["used"] for sums in part["totals"].values()) for part in parts
            ),
            "placements_per_second": self._arrivals / max(seconds, 1e-9),
            "allocated": _shares(totals, "used"),
            "stranded": _shares(totals, "stranded"),
        }

    def _follow(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.query is not None:
                self._place(event, event.query)
            elif (consumer := self._consumers_by_event.pop(event.name, None)) is not None:
                self._endpoint.send("DELETE", f"/allocations/{consumer}")

    def _place(self, event: Event, query: str) -> None:
        self._arrivals += 1
        if self._order is not None:
            parameters = [part for part in query.split("&") if not part.startswith("order_by=")]
            order = [] if self._order == "none" else [f"order_by={quote(self._order, safe=':,*')}"]
            query = "&".join([*parameters, *order])
        consumer = str(uuid.uuid4())
        request = {"alternatives": [query], "consumers": [consumer], **_OWNER}
        path, body = "/treeclaim/placements", {"requests": [request]}
        status, answer = self._endpoint.attempt("POST", path, body)
        if status == HTTPStatus.CREATED:
            self._consumers_by_event[event.name] = consumer
        elif status == HTTPStatus.CONFLICT:
            self._unplaced_count += 1
        else:
            raise ReplayError(f"{event.place}: {json.loads(answer)['errors'][0]['detail']}")


def _shares(totals: Mapping[str, Mapping[str, int]], member: str) -> dict[str, float]:
    """Return a member of each class that has it, divided by the capacity."""
    return {
        name: sums[member] / max(sums["capacity"], 1)
        for name, sums in totals.items()
        if member in sums
    }


def replay(plan: Plan, orders: Sequence[str | None]) -> list[dict[str, Any]]:
    """Replay by each order in turn; return the mean and the deviation of the outcomes of each.

    Args:
        plan: The cloud and its events; each seed gives the same arrivals for all orders.
        orders: Values of `order_by`; `none` for no order, and None for the order in each query.

    Raises:
        ReplayError: if the service refuses a query, or the cloud lacks the counted class.
    """
    documents = []
    for order in orders:
        outcomes = []
        for seed in range(max(plan.seeds, 1)):
            with (
                peer.new_folder() as folder,
                peer.treeclaim_on(f"sqlite:///{folder}/cloud.db", Path(folder)) as (url, _),
                Client(url, "admin") as client,
                closing(Endpoint(OURS, url).extended()) as endpoint,
            ):
                outcomes.append(Run(client, endpoint, plan, order).run(seed))
        first_outcome = outcomes[0]
        document: dict[str, Any] = {
            name: _spread([outcome[name] for outcome in outcomes]) for name in NUMBERS
        }
        for kind in ("allocated", "stranded"):
            document[kind] = {
                name: _spread([outcome[kind][name] for outcome in outcomes])
                for name in first_outcome[kind]
            }
        name = order or "as the queries say"
        documents.append({"order": name, "seeds": len(outcomes), **document})
    return documents


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    spread = statistics.stdev(values) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "spread": spread}


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, and print a table or a document."""
    parser = argparse.ArgumentParser("python -m bench.replay", description=_DESCRIPTION)
    parser.add_argument("cloud", type=Path, help="a topology, as for treeclaim load; or nodes")
    parser.add_argument("events", type=Path, help="arrivals and releases; or pods")
    parser.add_argument("--from", dest="form", choices=["openb"], help="the form of both files")
    parser.add_argument("--of", metavar="CLASS", help=f"the class to count ({GPU} of a trace)")
    parser.add_argument("--order", action="append", metavar="TERMS", help="may be repeated")
    parser.add_argument("--seeds", type=int, default=0, help="shuffle the arrivals so often")
    parser.add_argument(
        "--until", type=float, metavar="SHARE", help="draw until this share of --of is requested"
    )
    parser.add_argument("--mix", type=Path, metavar="FILE", help="a mix, named like the file")
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")
    options = parser.parse_args(arguments)
    if options.form is None and options.of is None:
        parser.error("--of is missing: the resource class to count")
    try:
        orders = replay(_plan(options), options.order or [None])
    except (ReplayError, TopologyError) as error:
        print(*getattr(error, "lines", [error]), sep="\n", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({"orders": orders}, indent=1))
    else:
        print("\n".join(table(orders, options.of or GPU)))
    return 0


def _plan(options: argparse.Namespace) -> Plan:
    mix = None if options.mix is None else (options.mix.stem, read_mix(options.mix))
    if options.form is None:
        topology, events = read_topology(options.cloud), read_events(options.events)
    else:
        topology = read_nodes(options.cloud)
        events, pods = read_pods(options.events)
        mix = mix or (MIX_NAME, pods)
    seeds = options.seeds or int(options.until is not None)
    return Plan(topology, events, mix, options.of or GPU, seeds, options.until)


def table(orders: Sequence[Mapping[str, Any]], counted_class: str) -> list[str]:
    """Return the lines of a table in Markdown: a row for each order."""
    lines = [
        f"| order | allocated of {counted_class}, % | stranded, % | unplaced | empty trees | placed a second |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for order in orders:
        cells = [_words(order[kind].get(counted_class), 100) for kind in ("allocated", "stranded")]
        cells += [_words(order[name]) for name in NUMBERS]
        lines.append(f"| {order['order']} | {' | '.join(cells)} |")
    return lines


def _words(value: Mapping[str, float] | None, factor: int = 1) -> str:
    if value is None:
        return ""
    mean, spread = factor * value["mean"], value["spread"]
    digits = 0 if factor == 1 else 2
    return f"{mean:,.{digits}f}" + ("" if spread is None else f" ± {factor * spread:.2f}")


if __name__ == "__main__":
    sys.exit(main())
