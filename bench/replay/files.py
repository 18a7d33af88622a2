# SPDX-License-Identifier: Apache-2.0
"""Files of a replay: lines of JSON of one's own, or the CSV files of public traces of GPU clusters.

A node of a trace is a tree: CPU and memory at its root, and each GPU a child of 1,000 thousandths that has its
model as a trait.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from treeclaim.client.topology.file import Topology, parse_topology
from treeclaim.model.extension.planning import MOST_REQUESTS

GPU = "CUSTOM_GPU_MILLI"
MIX_NAME = "pods"

_SIZES = (("CUSTOM_CPU_MILLI", "cpu_milli"), ("MEMORY_MB", "memory_mib"))
_MILLI_PER_GPU = 1_000
_EVENT = '{"at": 1, "place": "ID", "query": "…"} or {"at": 2, "release": "ID"}'

_Parsed = TypeVar("_Parsed")

Mix = Mapping[str, Any]
"""The body of `PUT /treeclaim/mixes/{name}`."""


class ReplayError(Exception):
    """An input cannot be replayed; the message names the file, and the line if there is one."""


@dataclass(frozen=True, slots=True)
class Event:
    """A consumer arrives or leaves.

    Attributes:
        place: The file and the line.
        name: The consumer.
        query: The query of an arrival; None when the consumer leaves.
    """

    place: str
    name: str
    query: str | None


def read_text(file: Path) -> str:
    """Read a file.

    Raises:
        ReplayError: if it cannot be read, or is not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise ReplayError(f"{file}: it cannot be read: {error}") from error


def read_events(file: Path) -> list[Event]:
    """Read a file of events; return them by their times.

    Raises:
        ReplayError: if it cannot be read or understood.
    """
    timed_events: list[tuple[float, Event]] = []
    for line, text in enumerate(read_text(file).split("\n"), 1):
        place = f"{file}:{line}"
        if text.strip():
            try:
                members = json.loads(text)
                name = members["place"] if "query" in members else members["release"]
                timed_events.append(
                    (float(members["at"]), Event(place, name, members.get("query")))
                )
            except (ValueError, LookupError, TypeError) as error:
                raise ReplayError(f"{place}: {text[:200]!r} is not {_EVENT}") from error
    events = [event for _, event in sorted(timed_events, key=lambda pair: pair[0])]
    present_names: set[str] = set()
    for event in events:
        if event.query is None:
            present_names.discard(event.name)
        elif event.name in present_names:
            raise ReplayError(f"{event.place}: {event.name!r} arrives before it is released")
        else:
            present_names.add(event.name)
    return events


def read_mix(file: Path) -> Mix:
    """Read the body of `PUT /treeclaim/mixes/{name}`.

    Raises:
        ReplayError: if the file is not JSON.
    """
    try:
        mix: Mix = json.loads(read_text(file))
    except ValueError as error:
        raise ReplayError(f"{file}: it is not JSON: {error}") from error
    return mix


def read_nodes(file: Path) -> Topology:
    """Read the nodes of a public trace.

    Raises:
        ReplayError: if they cannot be read or understood.
    """
    nodes = [node for _, node in _rows(file, _node)]
    return parse_topology(json.dumps({"providers": nodes}), str(file))


def _node(row: Mapping[str, str]) -> dict[str, Any]:
    gpus, amounts = _number(row["gpu"]), {name: _number(row[column]) for name, column in _SIZES}
    traits = [_trait(row["model"])] if gpus else []
    children = [
        {
            "name": f"{row['sn']}-gpu-{number}",
            "traits": traits,
            "inventories": {GPU: _MILLI_PER_GPU},
        }
        for number in range(gpus)
    ]
    stock = {name: amount for name, amount in amounts.items() if amount}
    return {"name": row["sn"], "inventories": stock, "children": children}


def read_pods(file: Path) -> tuple[list[Event], Mix]:
    """Read the pods of a public trace: arrivals in their order, and the mix of their most frequent kinds.

    Raises:
        ReplayError: if they cannot be read or understood.
    """
    queries = list(_rows(file, _pod))
    kinds = Counter(query for _, query in queries).most_common(MOST_REQUESTS)
    requests = {
        f"kind-{number}": {"query": query, "weight": count}
        for number, (query, count) in enumerate(kinds, 1)
    }
    events = [Event(place, str(number), query) for number, (place, query) in enumerate(queries)]
    return events, {"requests": requests}


def _pod(row: Mapping[str, str]) -> str:
    amounts = [f"{name}:{_number(row[column])}" for name, column in _SIZES]
    gpus, share = _number(row["num_gpu"]), _number(row["gpu_milli"])
    amounts_text = ",".join(amount for amount in amounts if not amount.endswith(":0"))
    if not amounts_text and not gpus:
        raise ValueError("it requests no resources")
    parts = [f"resources={amounts_text}"] if amounts_text else []
    models = sorted(_trait(model) for model in row["gpu_spec"].split("|") if model)
    for number in range(1, gpus + 1):
        parts.append(f"resources_G{number}={GPU}:{share if gpus == 1 else _MILLI_PER_GPU}")
        if models:
            parts.append(f"required_G{number}=in:{','.join(models)}")
    if gpus > 1:
        parts.append("group_policy=isolate")
    return "&".join(parts)


def _trait(model: str) -> str:
    return "CUSTOM_GPU_" + re.sub("[^A-Z0-9_]", "_", model.upper())


def _number(text: str) -> int:
    return int(text.removesuffix(".0") or "0")


def _rows(
    file: Path, parse: Callable[[Mapping[str, str]], _Parsed]
) -> Iterator[tuple[str, _Parsed]]:
    """Yield the parsed rows of a CSV file, each with its file and line."""
    reader = csv.DictReader(read_text(file).splitlines())
    for row in reader:
        place = f"{file}:{reader.line_num}"
        try:
            yield place, parse(row)
        except (ValueError, LookupError, AttributeError) as error:
            raise ReplayError(f"{place}: this row cannot be read: {error}") from error


def sum_requested_amounts(events: Sequence[Event], name: str) -> dict[str, int]:
    """Return the amount of a class that each query requests."""
    amount = re.compile(rf"(?<![A-Z0-9_]){re.escape(name)}:(\d+)")
    return {
        event.query: sum(map(int, amount.findall(event.query)))
        for event in events
        if event.query is not None
    }
