# SPDX-License-Identifier: Apache-2.0
"""`treeclaim replay` (contract page 101, section 6)."""

import json
import xml.etree.ElementTree as ET

import pytest

from tests.replay.traces import GPU, NODES, PODS, TOPOLOGY, lines, replay, told, written

POD = "{},1000,1000,{},{},{},LS\n"


def place(at, name, query):
    return {"at": at, "place": name, "query": query}


def test_each_order_places_the_same_events_and_points_tell_what_was_allocated(tmp_path):
    events = lines(
        place(3, "c", "resources=VCPU:8"),
        place(1, "a", "resources=VCPU:4"),
        place(2, "b", "resources=VCPU:4"),
    )
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events)
    found = told(*files.values(), "--order", "pack", "--order", "spread", "--order", "none")
    assert list(found) == ["pack", "spread", "none"]
    assert [one["unplaced"] for one in found.values()] == [
        {"mean": 0, "spread": None},
        {"mean": 1, "spread": None},
        {"mean": 0, "spread": None},
    ]
    assert [one["empty_trees"]["mean"] for one in found.values()] == [0, 0, 0]
    shares = [(p["asked"], p["allocated"]["VCPU"]["mean"]) for p in found["spread"]["points"]]
    # A quarter is asked first, then a half, then all, of which the last half finds nothing.
    assert shares == [(n / 10, 0.0 if n < 3 else 0.25 if n < 5 else 0.5) for n in range(1, 11)]
    assert found["pack"]["points"][-1]["allocated"]["VCPU"] == {"mean": 1.0, "spread": None}
    assert all(one["seeds"] == 1 for one in found.values())
    assert all(point["stranded"] == {} for one in found.values() for point in one["points"])


def test_what_is_released_is_free_again_and_who_was_not_placed_releases_nothing(tmp_path):
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
    (found,) = told(*files.values()).values()
    assert found["unplaced"]["mean"] == 1
    assert found["empty_trees"]["mean"] == 1
    assert found["points"][-1]["allocated"]["VCPU"]["mean"] == 6 / 16
    # In the end 30 of 16 were asked.
    assert found["points"][-1]["asked"] == 1.9


def test_a_point_is_of_each_class_for_itself_or_of_the_one_that_is_named(tmp_path):
    events = lines(
        place(1, "a", "resources=VCPU:8,DISK_GB:20"), place(2, "b", "resources=VCPU:8,DISK_GB:20")
    )
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events)
    (each,) = told(*files.values()).values()
    assert each["points"][1]["allocated"]["DISK_GB"]["mean"] == 0.2
    assert each["points"][1]["allocated"]["VCPU"]["mean"] == 0.0
    (of,) = told(*files.values(), "--of", "VCPU").values()
    assert [point["allocated"]["DISK_GB"]["mean"] for point in of["points"]] == [
        *[0.0] * 4,
        *[0.1] * 5,
        0.2,
    ]


NODE = "{},8000,8000,{},{}\n"


KINDS = [(1, 300, "")] * 4 + [(2, 1000, "")] * 2 + [(1, 700, "T4|A10")] * 3 + [(0, 0, "")]


def trace(folder, kinds=KINDS):
    """Two nodes of two GPUs and one of one, and pods: numbers, thousandths and models of GPUs."""
    nodes = (
        NODES
        + NODE.format("n1", 2, "T4")
        + NODE.format("n2", 2, "T4")
        + NODE.format("n3", 1, "A10")
    )
    pods = PODS + "".join(POD.format(f"p{number}", *kind) for number, kind in enumerate(kinds))
    return list(written(folder, nodes_csv=nodes, pods_csv=pods).values())


def test_a_trace_has_its_classes_models_and_mix(tmp_path):
    order = f"keep:pods:{GPU}"
    kinds = [(1, 300, "")] * 3 + [(2, 1000, "")] * 2
    found = told(*trace(tmp_path, kinds), "--from", "openb", "--order", order, "--order", "spread")
    last = found[order]["points"][-1]
    assert (
        set(last["allocated"]) == set(last["stranded"]) == {GPU, "CUSTOM_CPU_MILLI", "MEMORY_MB"}
    )
    # What shares goes to the node on which no pod wants two whole GPUs, as long as that has room.
    assert found[order]["unplaced"]["mean"] == 0
    assert found["spread"]["unplaced"]["mean"] > 0


def test_runs_with_the_same_seeds_are_the_same_and_tell_mean_and_spread(tmp_path):
    given = [*trace(tmp_path), "--from", "openb", "--seeds", "4", "--of", GPU, "--until", "1.25"]
    both = []
    for _ in range(2):
        (found,) = told(*given, "--order", f"keep:pods:{GPU}").values()
        assert found.pop("placements_per_second")["mean"] > 0
        both.append(found)
    assert both[0] == both[1]
    assert both[0]["seeds"] == 4
    assert both[0]["unplaced"]["spread"] is not None
    assert [point["asked"] for point in both[0]["points"]] == [n / 10 for n in range(1, 14)]
    assert all(len(point["allocated"]) == 3 for point in both[0]["points"])


def test_orders_see_the_same_arrivals_of_a_seed(tmp_path):
    given = [*trace(tmp_path), "--from", "openb", "--seeds", "3", "--of", GPU, "--until", "2"]
    found = told(*given, "--order", "none", "--order", "shuffle:a", "--order", "none")
    assert set(found) == {"none", "shuffle:a"}
    both = told(*given, "--order", "none")["none"], found["none"]
    assert both[0]["points"] == both[1]["points"]


def test_a_mix_is_read_from_a_file_and_named_as_it(tmp_path):
    mix = {"requests": {"large": {"query": "resources=VCPU:8", "weight": 2}}}
    events = lines(place(1, "a", "resources=VCPU:2"), place(2, "b", "resources=VCPU:2"))
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events, big_json=json.dumps(mix))
    given = [files["cloud_yaml"], files["events_jsonl"], "--mix", files["big_json"]]
    found = told(*given, "--order", "spread", "--order", "keep:big:VCPU*100,spread")
    assert found["spread"]["points"][-1]["stranded"]["VCPU"]["mean"] == 12 / 16
    assert found["keep:big:VCPU*100,spread"]["points"][-1]["stranded"]["VCPU"]["mean"] == 4 / 16


def test_people_see_a_table_and_a_picture(tmp_path):
    picture = tmp_path / "shares.svg"
    code, out, _ = replay(
        *trace(tmp_path),
        "--from",
        "openb",
        "--order",
        "pack",
        "--order",
        "spread",
        "--plot",
        picture,
    )
    assert code == 0
    assert "allocated, CUSTOM_GPU_MILLI, % of capacity" in out
    assert "stranded, CUSTOM_GPU_MILLI, % of capacity" in out
    drawn = ET.parse(picture).getroot()
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(drawn.findall("{*}polyline")) == 6


BAD_EVENTS = {
    '{"at": 1, "place": "a"}': "at, place and query, or at and release",
    '{"at": "x", "release": "a"}': "at is a number",
    '{"at": NaN, "release": "a"}': "at is a number",
    '{"at": true, "release": "a"}': "at is a number",
    '{"at": 1' + "0" * 400 + ', "release": "a"}': "at is a number",
    '{"at": 1, "release": 5}': "an id is a text",
    '{"at": 1, "place": "a", "query": 5}': "not a query",
    '{"at": 1, "place": "a", "query": "resources=VCPU"}': "resources",
    '{"at": 1, "place": "a", "query": "resources=NOTHING:1"}': "NOTHING",
    '{"at": 1, "place": "a", "query": "resources=VCPU:1&limit=x"}': "limit",
    "not JSON": "this is not JSON",
    "[" * 100_000: "this is not JSON",
    "[1]": "at, place and query, or at and release",
}


@pytest.mark.parametrize("line", BAD_EVENTS)
def test_what_is_wrong_with_an_event_is_told_with_file_and_line(tmp_path, line):
    good = '{"at": 0, "place": "x", "query": "resources=VCPU:1"}'
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=f"{good}\n\n{line}\n")
    code, out, err = replay(*files.values())
    assert (code, out) == (1, "")
    (message,) = err.splitlines()
    assert f"{files['events_jsonl']}:3: " in message
    assert BAD_EVENTS[line] in message
    assert len(message) < 1_000


def test_nobody_comes_twice_before_going(tmp_path):
    events = lines(place(2, "a", "resources=VCPU:1"), place(1, "a", "resources=VCPU:1"))
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events)
    assert ".jsonl:1: 'a' arrives again" in replay(*files.values())[2]


BAD_ROWS = {
    ("n,8000,8000,2", ""): "nodes.csv:2: this row does not have 5 columns",
    ("n,8000,8000,x,T4", ""): "nodes.csv:2: gpu is a whole number: 'x'",
    ("n,8000,99999999999999,1,T4", ""): "nodes.csv:2: memory_mib is a whole number",
    ("n,8000,4000000000,1,T4", ""): "nodes.csv:2: memory_mib is more than",
    ("n,8000,8000,1,T 4", ""): "nodes.csv:2: 'T 4' is not a model",
    ("n,8000,8000,999,T4", ""): "nodes.csv:2: 999 GPUs are more",
    (",8000,8000,1,T4", ""): "nodes.csv:2: the name ''",
    ("n,8000,8000,1,T4", "p,1000,1000,1,2000,,LS"): "pods.csv:2: '1' GPUs with '2000'",
    ("n,8000,8000,1,T4", "p,0,0,0,0,,LS"): "pods.csv:2: this pod asks for nothing",
    ("n,8000,8000,1,T4", "p,1,1,1,5,T4|x y,LS"): "pods.csv:2: 'x y' is not a model",
    ("n,8000,8000,1,T4", "p,1,1,1,5,V100,LS"): "CUSTOM_GPU_V100",
    ("n,8000,8000,1,T4", ""): "pods.csv: there are no pods",
}


@pytest.mark.parametrize("rows", BAD_ROWS)
def test_what_is_wrong_with_a_trace_is_told_with_file_and_line(tmp_path, rows):
    node, pod = rows
    pods = PODS + (f"{pod}\n" if pod else "")
    if "nodes" in BAD_ROWS[rows]:
        pods = PODS + POD.format("p", 1, 500, "")
    files = written(tmp_path, nodes_csv=f"{NODES}{node}\n", pods_csv=pods)
    code, _, err = replay(*files.values(), "--from", "openb")
    assert code == 1
    assert BAD_ROWS[rows] in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--until", "1.3"], "--until needs --of"),
        (["--until", "1.3", "--of", "NONE"], "--of"),
        (["--of", "NONE"], "--of"),
        (["--order", "best"], "there is no term 'best'"),
        (["--order", "keep:x:VCPU"], "there is no mix 'x'"),
        (["--seeds", "5000"], "at most 1000 seeds"),
        (["--mix", "missing.json"], "missing.json: it cannot be read"),
        (["--plot", "/nowhere/x.svg"], "/nowhere/x.svg: it cannot be written"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(tmp_path, given, words):
    events = lines(place(1, "a", "resources=VCPU:1"))
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events)
    code, _, err = replay(*files.values(), *given)
    assert code == 1
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "{}",
        "{",
        '{"requests": {}}',
        '{"requests": {"a": 5}}',
        '{"requests": {"a": {"query": "resources=VCPU:1", "weight": 0}}}',
        '{"requests": {"a": {"query": "resources=VCPU:1", "weight": true}}}',
        '{"requests": {"a": {"query": "resources=VCPU", "weight": 1}}}',
        '{"requests": {"a": {"query": "resources=VCPU:1&order_by=pack", "weight": 1}}}',
        '{"requests": {"a": {"query": "resources=VCPU:1&limit=1", "weight": 1}}}',
    ],
)
def test_what_is_no_mix_is_refused(tmp_path, document):
    events = lines(place(1, "a", "resources=VCPU:1"))
    files = written(tmp_path, cloud_yaml=TOPOLOGY, events_jsonl=events, mix_json=document)
    code, _, err = replay(files["cloud_yaml"], files["events_jsonl"], "--mix", files["mix_json"])
    assert code == 1
    assert str(files["mix_json"]) in err
    assert len(err.splitlines()) == 1


def test_a_parent_that_is_not_in_the_file_is_told(tmp_path):
    cloud = "providers:\n  - name: a\n    parent: nobody\n    inventories: {VCPU: 8}\n"
    events = lines(place(1, "a", "resources=VCPU:1"))
    files = written(tmp_path, cloud_yaml=cloud, events_jsonl=events)
    assert "cloud.yaml:3: there is no parent 'nobody'" in replay(*files.values())[2]
