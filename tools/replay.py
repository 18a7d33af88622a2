# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.replay NODES.csv PODS.csv...`: write the page that compares orders on a public trace.

What is published of it, and how arrivals come, is that of Weng et al., "Beware of Fragmentation: Scheduling
GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023. The trace itself is in no
repository of ours: whoever wants to repeat the table fetches it, and names the files.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treeclaim.replay.cloud import forest_of
from treeclaim.replay.openb import GPU, MIX_NAME, read_nodes, read_pods
from treeclaim.replay.replay import Plan, replayed

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "benchmarks" / "replay.json"
PAGE = ROOT / "docs" / "benchmarks" / "replay.md"

SEEDS = 10
UNTIL = 1_300
"""Thousandths of the capacity of all GPUs that are asked."""

KEEP = f"keep:{MIX_NAME}:{GPU}"
ORDERS = {
    KEEP: "`keep`: what costs the mix of all pods least room",
    "none": "no order: the first node of the file that fits",
    "shuffle:1": "`shuffle`: the first node that fits, in a random order of nodes",
    "spread": "`spread`: the emptiest node",
    "spread_providers": "`spread_providers`: the emptiest GPU",
    "pack": "`pack`: the fullest node, by mean share",
    "pack_providers": "`pack_providers`: the fullest GPU",
}
PUBLISHED = {
    "default": {"random": 87.47, "best fit": 93.08, "the paper's method": 95.39},
    "gpushare100": {"random": 79.44, "best fit": 85.01, "the paper's method": 86.90},
}
"""Mean GPU share allocated, in percent, by trace."""

_NAMES = {"default": "default trace", "gpushare100": "all pods share"}

_BEGIN = """# Orders on a public trace

Where consumers go today decides whether large ones fit tomorrow. `treeclaim replay` places arrivals
from a file in a cloud from a file, in memory; here those of a public trace: nodes and pods of
`cluster-trace-gpu-v2023`, as the simulator of Weng et al., *Beware of Fragmentation: Scheduling GPU-Sharing
Workloads with Fragmentation Gradient Descent* (USENIX ATC 2023), ships them. Every pod comes once, in a random
order, then pods are drawn with replacement until 130 % of all GPUs are requested; nothing leaves. The table has the share
of all GPUs that is then allocated, in percent: the mean of {seeds} seeds, and their standard deviation.

"""

_END = """
The published numbers are those of the paper, for the same nodes and pods. They count a pod that requests
several GPUs as one GPU; here it counts as what it requests, so that fewer pods come until 130 %.

## What to use when

{advice}
## Measuring it again

The trace is not in this repository. With its files, one command makes this page:

<!-- not run: it needs the public trace, which is in no repository of ours, and takes long -->

```sh
make replay NODES=openb_node_list_gpu_node.csv PODS="openb_pod_list_default.csv openb_pod_list_gpushare100.csv"
```

and another shows the shares at each tenth, as a table or a document:

<!-- not run: it needs the public trace, which is in no repository of ours -->

```sh
treeclaim replay --from openb NODES.csv PODS.csv --order keep:pods:CUSTOM_GPU_MILLI --order spread \\
    --seeds 10 --until 1.3 --of CUSTOM_GPU_MILLI --plot shares.svg
```

Measured with commit `{commit}`; all numbers are in [replay.json](replay.json). Speed is that of one
core, in CPU time, on a machine that was also busy with other work.
"""

_ADVICE = """- Devices that are shared or given whole, and a few kinds of request that are known: `keep`, with a mix that
  has the large requests; their weights hardly matter. `treeclaim mix learn` makes one from past requests.
- Nothing is known about future requests: no order, or `shuffle` if several schedulers must not meet on one host.
  Both fill host after host, which leaves others whole. `spread` is as good if many want whole devices, and
  worse if all share them.
- `pack` is a bad choice for devices: the fullest host by mean share is often one whose CPU is full, and what
  is left of its GPUs is stranded. `pack_providers` fills GPU after GPU, and ignores the CPU that the
  next one needs: it is worse still.
"""


def measured(nodes: Path, pods: Sequence[Path]) -> dict[str, Any]:
    """Replay each trace by all orders."""
    forest = forest_of(read_nodes(nodes))
    traces: dict[str, Any] = {}
    for file in pods:
        events, mix = read_pods(file)
        plan = Plan(forest, events, mix, list(ORDERS), SEEDS, UNTIL, GPU)
        found = [
            outcome.document()
            for outcome in replayed(plan, lambda order, seed: print(f"{order}, seed {seed}"))
        ]
        traces[file.stem.removeprefix("openb_pod_list_")] = found
    return {"commit": commit(), "traces": traces}


def commit() -> str:
    """Return the short name of the commit that is checked out."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def page_of(results: Mapping[str, Any]) -> str:
    """Return the page that tells of some results."""
    traces = results["traces"]
    names = [_NAMES.get(name, name) for name in traces]
    lines = [
        f"| | {' | '.join(names)} | placed a second |",
        f"| --- |{' ---: |' * (len(names) + 1)}",
    ]
    for word in next(iter(PUBLISHED.values())):
        cells = [_percent(PUBLISHED.get(name, {}).get(word)) for name in traces]
        lines.append(f"| {word} (published) | {' | '.join(cells)} | |")
    for order, words in ORDERS.items():
        found = [_of(results["traces"][name], order) for name in traces]
        if not any(found):
            continue
        speed = [one["placements_per_second"]["mean"] for one in found if one]
        cells = [_share(one) for one in found]
        lines.append(f"| {words} | {' | '.join(cells)} | {min(speed):,.0f} |")
    seeds = max(one["seeds"] for found in traces.values() for one in found)
    end = _END.format(commit=results["commit"], advice=_ADVICE)
    return _BEGIN.format(seeds=seeds) + "\n".join(lines) + "\n" + end


def _of(found: Sequence[Mapping[str, Any]], order: str) -> Mapping[str, Any] | None:
    return next((one for one in found if one["order"] == order), None)


def _share(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    share = one["points"][-1]["allocated"][GPU]
    spread = "" if share["spread"] is None else f" ± {100 * share['spread']:.2f}"
    return (
        f"**{100 * share['mean']:.2f}**{spread}"
        if one["order"] == KEEP
        else (f"{100 * share['mean']:.2f}{spread}")
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2f}"


def main(arguments: Sequence[str]) -> None:
    """Measure, and write the results and the page."""
    nodes, *pods = map(Path, arguments)
    results = measured(nodes, pods)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page_of(results))


if __name__ == "__main__":
    main(sys.argv[1:])
