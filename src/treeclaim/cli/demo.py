# SPDX-License-Identifier: Apache-2.0
"""`treeclaim demo`: the main job on embedded SQLite, from an empty database to a claim."""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console

from treeclaim.cli.cloud.contents import Contents, Wanted, read_contents
from treeclaim.cli.cloud.explanation import explanation
from treeclaim.cli.cloud.limits import limits_of
from treeclaim.cli.cloud.load import summary
from treeclaim.cli.cloud.providers import Row
from treeclaim.cli.cloud.tables import candidate_table, usage_table
from treeclaim.cli.output import PORT, CommandError
from treeclaim.client import CandidateQuery, Client, ClientError
from treeclaim.client.apply import apply_topology
from treeclaim.client.topology import TopologyError, read_topology

_TOKEN = "admin"  # noqa: S105
_START_SECONDS = 60
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the demo asks.

    Attributes:
        title: In words.
        query: As a client asks it.
    """

    title: str
    query: str


QUESTIONS = (
    Question(
        "Flat: one VCPU and 512 MB from one provider; where?",
        "resources_C=VCPU:1,MEMORY_MB:512&limit=6",
    ),
    Question(
        "NUMA affinity: CPUs, memory and an FPGA of one NUMA node",
        "resources_CPU=VCPU:4,MEMORY_MB:4096&resources_FPGA=FPGA:1"
        "&same_subtree=_CPU,_FPGA&group_policy=none&limit=6",
    ),
    Question(
        "Two virtual functions, one on each physical network, from one NIC",
        "resources_B=SRIOV_NET_VF:1&required_B=CUSTOM_PHYSNET_BLUE"
        "&resources_R=SRIOV_NET_VF:1&required_R=CUSTOM_PHYSNET_RED"
        "&required_NIC=CUSTOM_HW_NIC_ROOT&same_subtree=_NIC,_B,_R&group_policy=isolate&limit=6",
    ),
    Question(
        "Shared storage: hosts with an SSD disk of 500 GB, their own or the pool's",
        "resources=VCPU:2,DISK_GB:500&required=STORAGE_DISK_SSD&limit=12",
    ),
    Question(
        "A forbidden trait: the same, but on no licensed host",
        "resources=VCPU:2,DISK_GB:500&required=STORAGE_DISK_SSD,!CUSTOM_LICENSED&limit=12",
    ),
    Question(
        "Beyond Placement: more VCPUs than a NUMA node has, from several nodes of a host",
        "resources=VCPU:80&can_split=VCPU&split_policy=even&limit=4",
    ),
    Question(
        "Beyond Placement: two virtual functions and a third that shares its port with nobody",
        "resources_A=SRIOV_NET_VF:1&resources_B=SRIOV_NET_VF:1&resources_ALONE=SRIOV_NET_VF:1"
        "&isolate=_ALONE&limit=4",
    ),
)
HOPELESS = Question(
    "No candidate, and why: a GPU and a network port near to the same NUMA node",
    "resources_GPU=VGPU:1&resources_NET=SRIOV_NET_VF:1&required_NUMA=HW_NUMA_ROOT"
    "&same_subtree=_NUMA,_GPU,_NET",
)
_CLAIMED = QUESTIONS[1]
"""The question whose first candidate is claimed."""


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("demo", help="show the main job on a temporary database")
    command.add_argument(
        "file", type=Path, nargs="?", default=Path("examples/topology.yaml"), help="a topology"
    )
    command.add_argument(
        "--keep", action="store_true", help="leave the service running until interrupted"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start a service, load, ask, claim, and show."""
    console = Console()
    try:
        planned = read_topology(options.file)
        with (
            tempfile.TemporaryDirectory(prefix="treeclaim-demo-") as folder,
            _service(Path(folder)) as endpoint,
            Client(endpoint, _TOKEN) as client,
        ):
            console.print(f"Treeclaim serves at [bold]{endpoint}[/] on a new SQLite database.")
            console.print(f"Loading {options.file}: ", end="")
            console.print(summary(apply_topology(client, planned), dry_run=False))
            _show(console, client)
            _farewell(console, endpoint, keep=options.keep)
    except (TopologyError, ClientError) as error:
        raise CommandError(str(error)) from error
    return 0


def _show(console: Console, client: Client) -> None:
    names = {one["uuid"]: one["name"] for one in client.providers()}
    for question in QUESTIONS:
        answer = client.candidates(question.query)
        console.print(candidate_table(question.title, question.query, answer, names))
    console.print(f"[italic]{HOPELESS.title}[/]")
    told = client.explain(f"{HOPELESS.query}&nearest=2")
    query = CandidateQuery.parsed(HOPELESS.query)
    console.print(explanation(told, query, limits_of(client, told)))
    chosen = client.candidates(_CLAIMED.query)
    if not chosen["allocation_requests"]:
        console.print("There is no candidate to claim; the topology was changed.")
        return
    candidate = chosen["allocation_requests"][0]
    held = candidate["allocations"]
    providers = [row for row in client.providers() if row["uuid"] in held]
    console.print(usage_table("Before the claim", _contents(client, providers)))
    consumer = str(uuid.uuid4())
    client.claim(consumer, candidate, project_id="demo", user_id="demo", consumer_type="INSTANCE")
    console.print(f"Claimed the first candidate of “{_CLAIMED.title}” for consumer {consumer}.")
    console.print(usage_table("After the claim", _contents(client, providers)))


def _contents(client: Client, rows: Sequence[Row]) -> list[Contents]:
    return list(read_contents(client, rows, Wanted(), lambda *_progress: None).values())


def _farewell(console: Console, endpoint: str, *, keep: bool) -> None:
    if keep:
        console.print(f"The service stays at {endpoint} until you press Ctrl-C. Ask it yourself:")
        console.print(_curl(endpoint), soft_wrap=True, highlight=False)
        signal.pause()
        return
    console.print("The service stops now. To go on with one of your own:")
    for line in (
        "  make serve                                         # in one terminal",
        "  .venv/bin/treeclaim load examples/topology.yaml    # in another",
        _curl(f"http://127.0.0.1:{PORT}"),
    ):
        console.print(line, soft_wrap=True, highlight=False)


def _curl(endpoint: str) -> str:
    query = quote(QUESTIONS[3].query, safe="=&:,!_")
    return (
        f"  curl -s -H 'X-Auth-Token: {_TOKEN}' -H 'OpenStack-API-Version: placement latest' "
        f"'{endpoint}/allocation_candidates?{query}'"
    )


@contextmanager
def _service(folder: Path) -> Iterator[str]:
    """Run `treeclaim serve` on a free port with a database in a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # What is configured for a service of whoever runs this is not for the demo's.
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
        _wait_until_ready(endpoint, process, log)
        yield endpoint
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_until_ready(endpoint: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    with Client(endpoint, _TOKEN) as client:
        while True:
            try:
                client.get("/")
            except ClientError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise CommandError(
                        f"the service did not start:\n{log.read_text(errors='replace')}"
                    ) from error
                time.sleep(_PAUSE)
            else:
                return
