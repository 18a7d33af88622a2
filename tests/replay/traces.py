# SPDX-License-Identifier: Apache-2.0
"""Small files to replay, and the program that replays them."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

from bench.replay.__main__ import main

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
GPU = "CUSTOM_GPU_MILLI"

TOPOLOGY = """
providers:
  - name: "host-{n}"
    count: 2
    inventories: {VCPU: 8, DISK_GB: 100}
"""


def written(folder, **texts):
    """Write files; return their paths by name."""
    files = {}
    for name, text in texts.items():
        files[name] = folder / name.replace("_", ".")
        files[name].write_text(text)
    return files


def replay(*arguments):
    """The exit code of the command, and what it prints on each stream."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(map(str, arguments)))
    return code, out.getvalue(), err.getvalue()


def told(*arguments):
    """Return the output of the command with --json, by order."""
    code, out, err = replay(*arguments, "--json")
    assert (code, err) == (0, "")
    return {order["order"]: order for order in json.loads(out)["orders"]}


def lines(*events):
    """Events as JSON lines."""
    return "".join(json.dumps(event) + "\n" for event in events)
