# SPDX-License-Identifier: Apache-2.0
"""Public traces of GPU clusters: a CSV file of nodes and one of pods.

A node is a tree: CPU and memory at its root, and each GPU a child of 1,000 thousandths that has its model
as a trait.
"""

import csv
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from treeclaim.client.topology import PlannedProvider, Topology
from treeclaim.client.topology.planned import NAMESPACE, Parent
from treeclaim.model.extension.mixes import MOST_REQUESTS, Mix, MixRequest
from treeclaim.model.inventory import MAXIMUM_INTEGER
from treeclaim.replay.cloud import topology_of
from treeclaim.replay.files import MOST_EVENTS, Event, Events, parsed, problem, quoted, text_of

GPU = "CUSTOM_GPU_MILLI"
CPU = "CUSTOM_CPU_MILLI"
MEMORY = "MEMORY_MB"

MIX_NAME = "pods"

_WHOLE = 1_000
"""Thousandths of a GPU."""

_MOST_GPUS = 64
_LONGEST_MODEL = 200
_MODEL = re.compile(r"[A-Za-z0-9_.-]+")


def read_nodes(file: Path) -> Topology:
    """Read the nodes.

    Raises:
        ReplayError: if they cannot be read or understood.
    """
    providers = []
    names: set[str] = set()
    for line, row in _rows(file, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        name = row["sn"]
        if not name or name in names:
            raise problem(file, line, f"the name {quoted(name)} is empty, or used already")
        names.add(name)
        amounts = {
            CPU: _number(file, line, row, "cpu_milli"),
            MEMORY: _number(file, line, row, "memory_mib"),
        }
        inventories = {name: {"total": amount} for name, amount in amounts.items() if amount}
        providers.append(_provider(name, None, {"inventories": inventories}, line))
        gpus = _number(file, line, row, "gpu")
        if gpus > _MOST_GPUS:
            raise problem(file, line, f"{gpus} GPUs are more than {_MOST_GPUS}")
        traits = frozenset({_trait(file, line, row["model"])}) if gpus else frozenset()
        values = {"inventories": {GPU: {"total": _WHOLE}}, "traits": traits}
        providers += [
            _provider(f"{name}-gpu-{number}", Parent(name, line), values, line)
            for number in range(gpus)
        ]
    return topology_of(str(file), providers)


def _provider(
    name: str, parent: Parent | None, values: Mapping[str, object], line: int
) -> PlannedProvider:
    return PlannedProvider(
        name=name,
        uuid=str(uuid.uuid5(NAMESPACE, name)),
        has_own_uuid=False,
        parent=parent,
        values=values,
        lists_children=False,
        line=line,
    )


def read_pods(file: Path) -> tuple[Events, Mix]:
    """Read the pods: arrivals in the order of the file, and the mix of their most frequent kinds.

    Raises:
        ReplayError: if they cannot be read or understood.
    """
    events = []
    columns = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
    for line, row in _rows(file, columns):
        events.append(Event(line, row.get("name") or str(line), _query(file, line, row)))
    if not events:
        raise problem(file, 0, "there are no pods")
    kinds = Counter(event.query for event in events)
    named = {
        f"kind-{number}": MixRequest(parsed((file, 0), query), count)
        for number, (query, count) in enumerate(kinds.most_common(MOST_REQUESTS), 1)
    }
    return Events(file, events), Mix(MIX_NAME, named)


def _query(file: Path, line: int, row: Mapping[str, str]) -> str:
    rest = [(CPU, "cpu_milli"), (MEMORY, "memory_mib")]
    amounts = [(name, _number(file, line, row, column)) for name, column in rest]
    listed = ",".join(f"{name}:{amount}" for name, amount in amounts if amount)
    parts = [f"resources={listed}"] if listed else []
    gpus = _number(file, line, row, "num_gpu")
    milli = _number(file, line, row, "gpu_milli")
    if gpus > _MOST_GPUS or milli > _WHOLE or (gpus and not milli):
        text = f"{quoted(gpus)} GPUs with {quoted(milli)} thousandths of each"
        raise problem(file, line, text)
    models = sorted(_trait(file, line, model) for model in row["gpu_spec"].split("|") if model)
    for number in range(1, gpus + 1):
        parts.append(f"resources_G{number}={GPU}:{milli if gpus == 1 else _WHOLE}")
        if models:
            parts.append(f"required_G{number}=in:{','.join(models)}")
    if gpus > 1:
        parts.append("group_policy=isolate")
    if not parts:
        raise problem(file, line, "this pod asks for nothing")
    return "&".join(parts)


def _trait(file: Path, line: int, model: str) -> str:
    if len(model) > _LONGEST_MODEL or not _MODEL.fullmatch(model):
        raise problem(file, line, f"{quoted(model)} is not a model of a GPU")
    return "CUSTOM_GPU_" + re.sub("[^A-Z0-9_]", "_", model.upper())


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, Mapping[str, str]]]:
    reader = csv.DictReader(text_of(file).splitlines())
    try:
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise problem(file, 1, f"there is no column {quoted(missing[0])}")
        for number, row in enumerate(reader, 1):
            line = reader.line_num
            if number > MOST_EVENTS:
                raise problem(file, line, f"these are more than {MOST_EVENTS} rows")
            if None in row or None in row.values():
                raise problem(
                    file, line, f"this row does not have {len(reader.fieldnames or ())} columns"
                )
            yield line, row
    except csv.Error as error:
        raise problem(file, reader.line_num, f"this is not CSV: {quoted(error)}") from error


def _number(file: Path, line: int, row: Mapping[str, str], column: str) -> int:
    text = row[column].strip() or "0"
    whole = text.removesuffix(".0")
    if not (whole.isascii() and whole.isdigit()) or len(whole) > len(str(MAXIMUM_INTEGER)):
        raise problem(file, line, f"{column} is a whole number: {quoted(text)}")
    if int(whole) > MAXIMUM_INTEGER:
        raise problem(file, line, f"{column} is more than {MAXIMUM_INTEGER}: {quoted(text)}")
    return int(whole)
