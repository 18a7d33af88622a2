# SPDX-License-Identifier: Apache-2.0
"""Public traces of GPU clusters: a CSV file of nodes and one of pods.

A node is a tree: CPU and memory at its root, and each GPU a child of 1,000 thousandths that has its model
as a trait.
"""

import csv
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bench.replay.cloud import topology_of
from bench.replay.trace_files import Event, Events, problem, read_query, text_of
from treeclaim.client.topology import Parent, PlannedProvider, Topology
from treeclaim.model.extension.mixes import MOST_REQUESTS, Mix, MixRequest
from treeclaim.model.names import NAMESPACE

GPU = "CUSTOM_GPU_MILLI"
MIX_NAME = "pods"

_SIZES = (("CUSTOM_CPU_MILLI", "cpu_milli"), ("MEMORY_MB", "memory_mib"))

_WHOLE = 1_000
_Parsed = TypeVar("_Parsed")
_Row = Mapping[str, str]


def read_nodes(file: Path) -> Topology:
    """Read the nodes.

    Raises:
        ReplayError: if they cannot be read or understood.
    """
    nodes = [node for _, node in _parsed_rows(file, _read_node)]
    return topology_of(str(file), [provider for providers in nodes for provider in providers])


def _read_node(row: _Row, line: int) -> list[PlannedProvider]:
    def provider(name: str, parent: Parent | None, values: Mapping[str, Any]) -> PlannedProvider:
        own = str(uuid.uuid5(NAMESPACE, name))
        return PlannedProvider(name, own, False, parent, values, False, line)

    name = row["sn"]
    amounts = {resource: _number(row[column]) for resource, column in _SIZES}
    stock = {resource: {"total": amount} for resource, amount in amounts.items() if amount}
    gpus = _number(row["gpu"])
    traits = frozenset({_trait(row["model"])} if gpus else ())
    device = {"inventories": {GPU: {"total": _WHOLE}}, "traits": traits}
    children = [
        provider(f"{name}-gpu-{number}", Parent(name, line), device) for number in range(gpus)
    ]
    return [provider(name, None, {"inventories": stock}), *children]


def read_pods(file: Path) -> tuple[Events, Mix]:
    """Read the pods: arrivals in the order of the file, and the mix of their most frequent kinds.

    Raises:
        ReplayError: if they cannot be read or understood.
    """
    queries = list(_parsed_rows(file, lambda row, _: _read_pod(row)))
    kinds = Counter(query for _, query in queries).most_common(MOST_REQUESTS)
    mix = {
        f"kind-{number}": MixRequest(read_query((file, 0), query), count)
        for number, (query, count) in enumerate(kinds, 1)
    }
    events = [Event(line, str(line), query) for line, query in queries]
    return Events(file, events), Mix(MIX_NAME, mix)


def _read_pod(row: _Row) -> str:
    amounts = [f"{resource}:{_number(row[column])}" for resource, column in _SIZES]
    listed = ",".join(amount for amount in amounts if not amount.endswith(":0"))
    parts = [f"resources={listed}"] if listed else []
    gpus, share = _number(row["num_gpu"]), _number(row["gpu_milli"])
    models = sorted(_trait(model) for model in row["gpu_spec"].split("|") if model)
    for number in range(1, gpus + 1):
        parts.append(f"resources_G{number}={GPU}:{share if gpus == 1 else _WHOLE}")
        if models:
            parts.append(f"required_G{number}=in:{','.join(models)}")
    if gpus > 1:
        parts.append("group_policy=isolate")
    return "&".join(parts)


def _trait(model: str) -> str:
    return "CUSTOM_GPU_" + re.sub("[^A-Z0-9_]", "_", model.upper())


def _number(text: str) -> int:
    return int(text.removesuffix(".0") or "0")


def _parsed_rows(
    file: Path, parse: Callable[[_Row, int], _Parsed]
) -> Iterator[tuple[int, _Parsed]]:
    reader = csv.DictReader(text_of(file).splitlines())
    for row in reader:
        try:
            parsed = parse(row, reader.line_num)
        except (ValueError, LookupError, AttributeError) as error:
            raise problem(file, reader.line_num, f"this row cannot be read: {error}") from error
        yield reader.line_num, parsed
