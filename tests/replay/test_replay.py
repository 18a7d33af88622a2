# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.replay` places the arrivals of files by several orders."""

import json

import pytest

from tests.replay.traces import GPU, NODES, PODS, TOPOLOGY, lines, replay, told, written

POD = "{},1000,1000,{},{},{},LS\n"
NODE = "{},8000,8000,{},{}\n"
KINDS = [(1, 300, "")] * 4 + [(2, 1000, "")] * 2 + [(1, 700, "T4|A10")] * 3 + [(0, 0, "")]


def place(at, name, query):
    return {"at": at, "place": name, "query": query}


def vcpu(outcome):
    """The mean share of VCPU that is allocated."""
    return outcome["allocated"]["VCPU"]["mean"]


def test_each_order_places_the_same_events(tmp_path):
    events = lines(
        place(3, "c", "resources=VCPU:8"),
        place(1, "a", "resources=VCPU:4"),
        place(2, "b", "resources=VCPU:4"),
    )
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events)
    orders = ("--order", "pack", "--order", "spread", "--order", "none")
    result = told(*files.values(), "--of", "VCPU", *orders)
    assert list(result) == ["pack", "spread", "none"]
    assert [one["unplaced"]["mean"] for one in result.values()] == [0, 1, 0]
    assert [vcpu(one) for one in result.values()] == [1.0, 0.5, 1.0]
    assert all(one["empty_trees"] == {"mean": 0, "spread": None} for one in result.values())


def test_released_amounts_are_free_again(tmp_path):
    events = lines(
        place(1, "a", "resources=VCPU:8"),
        place(1, "b", "resources=VCPU:8"),
        place(2, "c", "resources=VCPU:8"),
        {"at": 3, "release": "c"},
        {"at": 3, "release": "nobody"},
        {"at": 4, "release": "b"},
        place(4, "c", "resources=VCPU:6"),
        {"at": 5, "release": "a"},
    )
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events)
    (found,) = told(*files.values(), "--of", "VCPU").values()
    assert (found["unplaced"]["mean"], found["empty_trees"]["mean"]) == (1, 1)
    assert vcpu(found) == 6 / 16


def trace(folder, kinds=KINDS):
    """Two nodes of two GPUs and one of one, and pods: numbers, thousandths and models of GPUs."""
    nodes = [("n1", 2, "T4"), ("n2", 2, "T4"), ("n3", 1, "A10")]
    nodes_csv = NODES + "".join(NODE.format(*node) for node in nodes)
    pods = PODS + "".join(POD.format(f"p{number}", *kind) for number, kind in enumerate(kinds))
    return [*written(folder, nodes_csv=nodes_csv, pods_csv=pods).values(), "--from", "openb"]


def test_trace_defines_classes_models_and_mix(tmp_path):
    order = f"keep:pods:{GPU}"
    kinds = [(1, 300, "")] * 3 + [(2, 1000, "")] * 2
    result = told(*trace(tmp_path, kinds), "--order", order, "--order", "spread")
    classes = {GPU, "CUSTOM_CPU_MILLI", "MEMORY_MB"}
    assert result[order]["allocated"].keys() == result[order]["stranded"].keys() == classes
    # Pods that share go to the node on which no pod wants two whole GPUs, while it has room.
    assert result[order]["unplaced"]["mean"] == 0
    assert result["spread"]["unplaced"]["mean"] > 0


def test_runs_with_the_same_seeds_are_the_same(tmp_path):
    arguments = [*trace(tmp_path), "--seeds", "4", "--until", "1.25"]
    both = []
    for _ in range(2):
        result = told(*arguments, "--order", "none", "--order", f"keep:pods:{GPU}")
        for one in result.values():
            assert one.pop("placements_per_second")["mean"] > 0
            assert (one["seeds"], one["unplaced"]["spread"] is None) == (4, False)
        both.append(result)
    assert both[0] == both[1]
    # An order alone sees the same arrivals as beside others.
    (alone,) = told(*arguments, "--order", "none").values()
    assert alone["allocated"] == both[0]["none"]["allocated"]


def test_mix_is_read_from_a_file_and_named_after_it(tmp_path):
    mix = {"requests": {"large": {"query": "resources=VCPU:8", "weight": 2}}}
    events = lines(place(1, "a", "resources=VCPU:2"), place(2, "b", "resources=VCPU:2"))
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events, big_json=json.dumps(mix))
    cloud, lines_, mix_file = files.values()
    keep = "keep:big:VCPU*100,spread"
    orders = ("--order", "spread", "--order", keep)
    result = told(cloud, lines_, "--of", "VCPU", "--mix", mix_file, *orders)
    stranded = {order: result[order]["stranded"]["VCPU"]["mean"] for order in result}
    assert stranded == {"spread": 12 / 16, keep: 4 / 16}


def test_table_has_a_row_for_each_order(tmp_path):
    code, out, _ = replay(*trace(tmp_path), "--order", "pack", "--order", "spread", "--seeds", "2")
    assert code == 0
    header, _, *rows = out.splitlines()
    assert f"allocated of {GPU}, %" in header
    assert [row.split(" | ")[0] for row in rows] == ["| pack", "| spread"]


@pytest.mark.parametrize(
    "line",
    [
        '{"at": 1, "place": "a"}',
        '{"at": "x", "release": "a"}',
        '{"at": 1, "place": "a", "query": "resources=VCPU"}',
        '{"at": 1, "place": "a", "query": "resources=NOTHING:1"}',
        "not JSON",
        '{"at": 0, "place": "x", "query": "resources=VCPU:1"}',
    ],
)
def test_an_error_of_an_event_names_file_and_line(tmp_path, line):
    good = '{"at": 0, "place": "x", "query": "resources=VCPU:1"}'
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=f"{good}\n\n{line}\n")
    code, out, err = replay(*files.values(), "--of", "VCPU")
    assert (code, out) == (1, "")
    assert f"{files['events_jsonl']}:3: " in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("node", "pod", "place"),
    [
        ("n,8000,8000,2", "p,1,1,1,500,,LS", "nodes.csv:2: "),
        ("n,8000,8000,x,T4", "p,1,1,1,500,,LS", "nodes.csv:2: "),
        ("n,8000,8000,1,T4", "p,1,1,x,500,,LS", "pods.csv:2: "),
        ("n,8000,8000,1,T4", "p,1,1,1,5,V100,LS", "CUSTOM_GPU_V100"),
        ("n,8000,8000,1,T4", "p,0,0,0,0,,LS", "pods.csv: "),
    ],
)
def test_an_error_of_a_trace_names_file_and_line(tmp_path, node, pod, place):
    files = written(tmp_path, nodes_csv=f"{NODES}{node}\n", pods_csv=f"{PODS}{pod}\n")
    code, _, err = replay(*files.values(), "--from", "openb")
    assert (code, place in err) == (1, True), err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--of", "NONE"], "NONE"),
        (["--of", "VCPU", "--order", "best"], "there is no term 'best'"),
        (["--of", "VCPU", "--order", "keep:x:VCPU"], "there is no mix 'x'"),
        (["--of", "VCPU", "--mix", "missing.json"], "missing.json: it cannot be read"),
    ],
)
def test_unusable_options_are_errors(tmp_path, options, words):
    events = lines(place(1, "a", "resources=VCPU:1"))
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events)
    code, _, err = replay(*files.values(), *options)
    assert (code, words in err) == (1, True), err
    missing = TOPOLOGY + "  - {name: a, parent: nobody, inventories: {VCPU: 8}}\n"
    files = written(tmp_path, cloud_yaml=missing, events_jsonl=events)
    assert "there is no parent 'nobody'" in replay(*files.values(), "--of", "VCPU")[2]
