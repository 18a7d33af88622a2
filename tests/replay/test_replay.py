# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.replay` places the arrivals of files by several orders."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from bench.replay.__main__ import Plan, main
from bench.replay.files import (
    GPU,
    Event,
    ReplayError,
    read_events,
    read_mix,
    read_nodes,
    read_pods,
)
from treeclaim.client.topology.file import parse_topology

TOPOLOGY = """
providers:
  - name: "host-{n}"
    count: 2
    inventories: {VCPU: 8, DISK_GB: 100}
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"


def place(at, name, query):
    return {"at": at, "place": name, "query": query}


def written(folder, name, text):
    file = folder / name
    file.write_text(text)
    return file


def lines(folder, *events):
    return written(folder, "events.jsonl", "".join(f"{json.dumps(event)}\n" for event in events))


def replay(*arguments):
    """Return the exit code of the command, and its output on each stream."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(map(str, arguments)))
    return code, out.getvalue(), err.getvalue()


def printed_error(*arguments):
    """The output of the command with --json, by order."""
    code, out, err = replay(*arguments, "--json")
    assert (code, err) == (0, "")
    return {order["order"]: order for order in json.loads(out)["orders"]}


@pytest.mark.slow
def test_each_order_places_the_same_events_and_released_amounts_are_free_again(tmp_path):
    events = lines(
        tmp_path,
        place(3, "c", "resources=VCPU:8"),
        place(1, "a", "resources=VCPU:4"),
        place(2, "b", "resources=VCPU:4"),
        {"at": 4, "release": "a"},
        {"at": 4, "release": "nobody"},
        place(5, "d", "resources=VCPU:4"),
        place(6, "e", "resources=VCPU:2"),
    )
    cloud = written(tmp_path, "cloud.yaml", TOPOLOGY)
    mix = {"requests": {"large": {"query": "resources=VCPU:8", "weight": 2}}}
    mix_file = written(tmp_path, "big.json", json.dumps(mix))
    orders = ("spread", "keep:big:VCPU*100,spread")
    options = [option for order in orders for option in ("--order", order)]
    result = printed_error(cloud, events, "--of", "VCPU", "--mix", mix_file, *options)
    assert tuple(result) == orders
    for numbers, outcome in zip(((1, 10), (1, 16)), result.values(), strict=True):
        unplaced, used = numbers
        assert outcome["unplaced"]["mean"] == unplaced
        assert outcome["allocated"]["VCPU"]["mean"] == used / 16
        assert outcome["empty_trees"] == {"mean": 0, "spread": None}
        assert outcome["stranded"]["VCPU"]["mean"] == (16 - used) / 16


@pytest.mark.slow
def test_pods_of_a_trace_are_placed_by_the_mix_of_all_pods(tmp_path):
    nodes = [("n1", 2, "T4"), ("n2", 2, "T4"), ("n3", 1, "A10")]
    kinds = [(1, 300, "")] * 3 + [(2, 1000, "")] * 2
    trace = (
        written(
            tmp_path,
            "nodes.csv",
            NODES + "".join("{},8000,8000,{},{}\n".format(*node) for node in nodes),
        ),
        written(
            tmp_path,
            "pods.csv",
            PODS + "".join("p,1000,1000,{},{},{},LS\n".format(*kind) for kind in kinds),
        ),
    )
    order = f"keep:pods:{GPU}"
    result = printed_error(*trace, "--from", "openb", "--order", order, "--order", "spread")
    classes = {GPU, "CUSTOM_CPU_MILLI", "MEMORY_MB"}
    assert result[order]["allocated"].keys() == result[order]["stranded"].keys() == classes
    # Pods that share go to the node on which no pod wants two whole GPUs, while it has room.
    assert result[order]["unplaced"]["mean"] == 0
    assert result["spread"]["unplaced"]["mean"] > 0


def test_runs_with_the_same_seed_have_the_same_arrivals():
    events = [Event("file:1", str(number), f"resources=VCPU:{number}") for number in range(1, 5)]
    plan = Plan(parse_topology(TOPOLOGY, "file"), events, None, "VCPU", 2, 2.0)
    first, again, other = (list(plan.draw_events(seed, 16)) for seed in (0, 0, 1))
    assert first == again != other
    assert 28 <= sum(int(event.query.rpartition(":")[2]) for event in first) <= 32
    assert sorted(first[:4], key=events.index) == events


ARRIVAL = '{"at": 0, "place": "x", "query": "resources=VCPU:1"}'
NO_EVENTS = ('{"at": 1, "place": "a"}', '{"at": "x", "release": "a"}', "not JSON", ARRIVAL)
"""The last one places a consumer again."""


@pytest.mark.parametrize(
    ("read", "text", "place"),
    [
        *[(read_events, f"{ARRIVAL}\n\n{line}\n", r"file:3: ") for line in NO_EVENTS],
        (read_nodes, f"{NODES}n,8000,8000,2\n", r"file:2: "),
        (read_nodes, f"{NODES}n,8000,8000,x,T4\n", r"file:2: "),
        (read_pods, f"{PODS}p,1,1,x,500,,LS\n", r"file:2: "),
        (read_pods, f"{PODS}p,0,0,0,0,,LS\n", r"file:2: .*no resources"),
        (read_mix, "none", r"file: it is not JSON"),
    ],
)
def test_an_error_of_a_file_names_file_and_line(tmp_path, read, text, place):
    with pytest.raises(ReplayError, match=place):
        read(written(tmp_path, "file", text))
    with pytest.raises(ReplayError, match="missing: it cannot be read"):
        read(Path("missing"))
