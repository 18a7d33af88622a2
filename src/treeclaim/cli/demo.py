# SPDX-License-Identifier: Apache-2.0
"""`demo`: runs the main commands against a temporary service on SQLite."""

import argparse
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from treeclaim.cli.arguments import DeclaredCommand
from treeclaim.cli.output import CommandError, print_lines, print_trusted
from treeclaim.cli.printing import make_printer
from treeclaim.cli.registry import run_command
from treeclaim.client import Client, ClientError

_TOKEN = "admin"  # noqa: S105
_START_SECONDS = 120
_PAUSE = 0.05

_NEAR_FPGA = (
    "resources_CPU=VCPU:4,MEMORY_MB:4096 resources_FPGA=FPGA:1 same_subtree=_CPU,_FPGA"
    " group_policy=none limit=3"
)

_TWO_NETWORKS = (
    "resources_B=SRIOV_NET_VF:1 required_B=CUSTOM_PHYSNET_BLUE resources_R=SRIOV_NET_VF:1"
    " required_R=CUSTOM_PHYSNET_RED required_NIC=CUSTOM_HW_NIC_ROOT same_subtree=_NIC,_B,_R"
    " group_policy=isolate limit=3"
)

_GPU_AND_NETWORK = (
    "resources_GPU=VGPU:1 resources_NET=SRIOV_NET_VF:1 required_NUMA=HW_NUMA_ROOT"
    " same_subtree=_NUMA,_GPU,_NET"
)

_FLAVORS = {
    "small": {"vcpus": 1, "ram": 1024},
    "gpu": {"vcpus": 8, "extra_specs": {"resources_GPU:VGPU": "2", "group_policy": "none"}},
    "fpga": {"vcpus": 4, "extra_specs": {"resources_FPGA:FPGA": "1", "group_policy": "none"}},
}

_STEPS = (
    ("The cloud is loaded", "load {file}"),
    ("One tree of each kind", "tree host-1 edge-1 rack-1-pool"),
    (
        "1. CPUs, memory and an FPGA close together, on one NUMA node",
        f"candidates {_NEAR_FPGA}",
    ),
    (
        "2. Two virtual functions, one on each physical network, from one NIC",
        f"candidates {_TWO_NETWORKS}",
    ),
    (
        "3. What Placement cannot express: 80 VCPU, evenly from several NUMA nodes of a host",
        "candidates resources=VCPU:80 can_split=VCPU split_policy=even limit=3",
    ),
    (
        "4. A GPU and a network port near the same NUMA node: nowhere, and why",
        f"explain {_GPU_AND_NETWORK} --nearest 1",
    ),
    ("The first candidate of query 1 is claimed", f"claim {_NEAR_FPGA}"),
    (
        "12 servers in one transaction, at most 3 in each tree, the emptiest hosts first",
        "place resources=VCPU:2 --amount 12 --most 3 --order-by spread --partial",
    ),
    ("How many more fit, of each flavor", "fit --flavors {flavors}"),
)
"""Titles and commands."""


class Demo(DeclaredCommand):
    """Run the main commands against a temporary service: load a small cloud, search and claim."""

    example = "--keep"

    arguments = """
        --keep      leave the service running until interrupted
        --topology  only print the topology of the cloud
    """

    def execute(self, options: argparse.Namespace) -> int:
        topology = (resources.files("treeclaim.cli") / "data" / "topology.yaml").read_text("utf-8")
        if options.topology:
            print_trusted(topology, end="")
            return 0
        with tempfile.TemporaryDirectory(prefix="treeclaim-demo-") as name:
            file, flavors = Path(name) / "cloud.yaml", Path(name) / "flavors.json"
            file.write_text(topology, encoding="utf-8")
            flavors.write_text(json.dumps(_FLAVORS), encoding="utf-8")
            with _run_service(Path(name)) as endpoint:
                print_lines(f"Treeclaim serves at {endpoint}, on a new SQLite database.")
                for title, command in _STEPS:
                    words = command.format(file=file, flavors=flavors)
                    print_lines("")
                    make_printer().print(title, style="bold")
                    print_lines(f"$ treeclaim {words}")
                    service = ["--endpoint", endpoint, "--token", _TOKEN]
                    run_command(shlex.split(words), service)
                _print_next_steps(endpoint, keep=options.keep)
        return 0


def _print_next_steps(endpoint: str, *, keep: bool) -> None:
    program = _find_program_name()
    options = f" --endpoint {endpoint}" if keep else ""
    commands = [
        f"  {program} candidates {_NEAR_FPGA}{options}",
        f"  {program} plan drain host-1{options}",
    ]
    print_lines("")
    if not keep:
        print_lines(
            "The service ends now; --keep leaves it running. To run your own:",
            "  export OS_PLACEMENT_DATABASE__CONNECTION=sqlite:///treeclaim.db OS_API__AUTH_STRATEGY=noauth2",
            f"  {program} db sync && {program} serve &",
            f"  {program} demo --topology > cloud.yaml && {program} load cloud.yaml",
            *commands,
        )
        return
    print_lines(f"The service stays at {endpoint} until you press Ctrl-C.")
    make_printer().print(
        f"Look at its pages: {endpoint}/ui/ (the token is {_TOKEN})", style="bold"
    )
    # Without a flush, a pipe would get these lines only when the service ends.
    print_lines("Or continue here:", *commands, flush=True)
    signal.pause()


def _find_program_name() -> str:
    """Return the path by which the program was called, `treeclaim` if it was called otherwise."""
    called = Path(sys.argv[0])
    return sys.argv[0] if called.name == "treeclaim" and called.parent != Path() else "treeclaim"


@contextmanager
def _run_service(folder: Path) -> Iterator[str]:
    """Run `treeclaim serve` on a free port with a database in a folder; yield its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # OS_* variables configure another service.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    environment |= {
        "OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{folder}/demo.db",
        "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_TREECLAIM__ADMIN_LISTEN": "",
    }
    command = [sys.executable, "-m", "treeclaim", "serve", "--port", str(port)]
    log = folder / "service.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603
            command, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _await_service(endpoint, process, log)
        yield endpoint
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await_service(endpoint: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    with Client(endpoint, _TOKEN) as client:
        while True:
            try:
                client.get("/")
            except ClientError as error:
                has_ended = process.poll() is not None
                if has_ended or time.monotonic() > deadline:
                    limit_text = "" if has_ended else f" within {_START_SECONDS} seconds"
                    lines = log.read_text(errors="replace").splitlines()
                    raise CommandError(
                        f"the service did not start{limit_text}:", *lines
                    ) from error
                time.sleep(_PAUSE)
            else:
                return
