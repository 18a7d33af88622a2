# SPDX-License-Identifier: Apache-2.0
"""`treeclaim demo`: the main job on embedded SQLite, from an empty database to a claim."""

import argparse
import os
import re
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
from importlib import resources
from pathlib import Path
from typing import Any

from treeclaim.cli.cloud.asking.explanation import explanation, limits_of
from treeclaim.cli.cloud.asking.questions import candidate_table
from treeclaim.cli.cloud.changing.load import summary
from treeclaim.cli.cloud.looking.contents import Contents, read_contents
from treeclaim.cli.cloud.looking.show import usage_table
from treeclaim.cli.cloud.looking.tree import show_trees
from treeclaim.cli.cloud.providers import Row
from treeclaim.cli.demo_placing import TITLE, show_batch, show_capacity
from treeclaim.cli.output import PORT, CommandError, printer, say, say_script
from treeclaim.cli.printing import Printer
from treeclaim.client import CandidateQuery, Client, ClientError
from treeclaim.client.loading import apply_topology
from treeclaim.client.reports import Reports
from treeclaim.client.topology import Topology, TopologyError, parse_topology, read_topology
from treeclaim.ui.serving import PREFIX

_TOKEN = "admin"  # noqa: S105
_START_SECONDS = 120
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
        "CPUs, memory and an FPGA close together, on one NUMA node",
        "resources_CPU=VCPU:4,MEMORY_MB:4096&resources_FPGA=FPGA:1"
        "&same_subtree=_CPU,_FPGA&group_policy=none&limit=3",
    ),
    Question(
        "Two virtual functions, one on each physical network, from one NIC",
        "resources_B=SRIOV_NET_VF:1&required_B=CUSTOM_PHYSNET_BLUE"
        "&resources_R=SRIOV_NET_VF:1&required_R=CUSTOM_PHYSNET_RED"
        "&required_NIC=CUSTOM_HW_NIC_ROOT&same_subtree=_NIC,_B,_R&group_policy=isolate&limit=3",
    ),
    Question(
        "What Placement cannot express: 80 VCPU, evenly from several NUMA nodes of a host",
        "resources=VCPU:80&can_split=VCPU&split_policy=even&limit=3",
    ),
)
HOPELESS = Question(
    "A GPU and a network port near the same NUMA node: nowhere, and why",
    "resources_GPU=VGPU:1&resources_NET=SRIOV_NET_VF:1&required_NUMA=HW_NUMA_ROOT"
    "&same_subtree=_NUMA,_GPU,_NET",
)
_PAGES = (
    "Cloud: totals, and a map of the trees that changes as claims come in",
    "Tree: a host with its NUMA nodes and devices, its pool, and who holds what",
    "Ask: the questions above as a form; candidates drawn onto their trees, or why there is none",
    "Fit: how many more of a flavor there is room for; Consumers; Audit",
    "Survival: which hosts may be lost; Plan: moves that empty a host or make room",
)
"""What the browser shows."""

_CLAIMED = QUESTIONS[0]
"""The question whose first candidate is claimed."""

_ASKED = 5
"""How often a question is asked for its time: the first answer also fills caches."""


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "demo",
        description="Start a service on a new SQLite database, load a small cloud, ask, explain "
        "and claim. Nothing is left behind.",
    )
    command.add_argument(
        "file", type=Path, nargs="?", help="a topology; without it, that of the package"
    )
    command.add_argument(
        "--keep", action="store_true", help="leave the service running until interrupted"
    )
    command.add_argument(
        "--topology", action="store_true", help="only print the package's topology"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start a service, load, ask, claim, and show."""
    if options.topology:
        say_script(_example(), end="")
        return 0
    out = printer()
    try:
        topology = _topology(options.file)
        with (
            tempfile.TemporaryDirectory(prefix="treeclaim-demo-") as folder,
            _service(Path(folder)) as endpoint,
            Client(endpoint, _TOKEN) as client,
        ):
            begin = time.perf_counter()
            outcome = apply_topology(client, topology)
            seconds = time.perf_counter() - begin
            out.print(f"Treeclaim serves at {endpoint}, on a new SQLite database.")
            out.print(f"The cloud ({summary(outcome, dry_run=False)} in {seconds:.1f} s):")
            _show(out, client)
            _farewell(out, endpoint, keep=options.keep)
    except TopologyError as error:
        raise CommandError(*error.lines) from error
    except ClientError as error:
        raise CommandError(str(error)) from error
    return 0


def _topology(file: Path | None) -> Topology:
    if file is not None:
        return read_topology(file)
    return parse_topology(_example(), "the example")


def _example() -> str:
    file = resources.files("treeclaim.cli") / "data" / "topology.yaml"
    return file.read_text(encoding="utf-8")


def _show(out: Printer, client: Client) -> None:
    rows = client.providers()
    names = {row["uuid"]: row["name"] for row in rows}
    shown, others = _kinds(rows)
    show_trees(
        out, shown, {contents.row["uuid"]: contents for contents in _contents(client, shown)}
    )
    out.print(f"and {others} more like these." if others else "")
    for number, question in enumerate(QUESTIONS, 1):
        milliseconds = _milliseconds(client, question)
        answer = client.candidates(question.query)
        _headline(out, f"{number}. {question.title}")
        count = len(answer["allocation_requests"])
        title = f"{count} candidates in {milliseconds:.1f} ms"
        out.print(candidate_table(title, question.query, answer, names))
    _headline(out, f"{len(QUESTIONS) + 1}. {HOPELESS.title}")
    told = client.explain(f"{HOPELESS.query}&nearest=1")
    query = CandidateQuery.parsed(HOPELESS.query)
    out.print(explanation(told, query, limits_of(client, told)))
    _claim(out, client)
    _headline(out, TITLE)
    show_batch(out, client)
    _headline(out, "How many more fit, of each flavor")
    show_capacity(out, client)


def _kinds(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Return one tree of each kind, by names without digits, and how many others there are."""
    kinds: dict[str, str] = {}
    roots = sorted(row["name"] for row in rows if row["parent_provider_uuid"] is None)
    for name in roots:
        kinds.setdefault(re.sub("[0-9]+", "", name), name)
    chosen = {row["uuid"] for row in rows if row["name"] in kinds.values()}
    return [row for row in rows if row["root_provider_uuid"] in chosen], len(roots) - len(kinds)


def _milliseconds(client: Client, question: Question) -> float:
    """Return the shortest time of some answers, with all that HTTP takes."""
    times = []
    for _ in range(_ASKED):
        begin = time.perf_counter()
        client.candidates(question.query)
        times.append(time.perf_counter() - begin)
    return 1000 * min(times)


def _claim(out: Printer, client: Client) -> None:
    chosen = client.candidates(_CLAIMED.query)["allocation_requests"]
    _headline(out, "The first candidate of question 1 is claimed")
    if not chosen:
        out.print("There is none: this topology is not the demo's own.")
        return
    consumer = str(uuid.uuid4())
    client.claim(consumer, chosen[0], project_id="demo", user_id="demo")
    # As `place` does: plans move only consumers whose needs are known.
    Reports(client).keep_requests({consumer: [_CLAIMED.query]})
    held = chosen[0]["allocations"]
    rows = [row for row in client.providers() if row["uuid"] in held]
    out.print(usage_table(f"Consumer {consumer} holds", _contents(client, rows)))


def _headline(out: Printer, text: str) -> None:
    out.print()
    out.print(text, style="bold")


def _contents(client: Client, rows: Sequence[Row]) -> list[Contents]:
    return list(read_contents(client, rows, (), lambda *_progress: None).values())


def _farewell(out: Printer, endpoint: str, *, keep: bool) -> None:
    out.print()
    if keep:
        out.print(f"The service stays at {endpoint} until you press Ctrl-C.")
        out.print(f"Look at its pages: {endpoint}{PREFIX}/ (the token is {_TOKEN})", style="bold")
        for what in _PAGES:
            out.print(f"  {what}")
        out.print("Ask yourself:")
        for line in _commands(endpoint):
            out.print(f"  {line}", soft_wrap=True)
        # The reader of a pipe would see none of this until the service ends.
        say(flush=True)
        signal.pause()
        return
    out.print("The service ends now; --keep leaves it running. To run your own:")
    for line in (
        "export OS_PLACEMENT_DATABASE__CONNECTION=sqlite:///treeclaim.db OS_API__AUTH_STRATEGY=noauth2",
        f"{_program()} db sync && {_program()} serve &",
        f"{_program()} demo --topology > cloud.yaml && {_program()} load cloud.yaml",
        *_commands(f"http://127.0.0.1:{PORT}"),
    ):
        out.print(f"  {line}", soft_wrap=True)


def _commands(endpoint: str) -> list[str]:
    given = "" if endpoint.endswith(f":{PORT}") else f" --endpoint {endpoint}"
    words = QUESTIONS[0].query.replace("&", " ")
    return [
        f"{_program()} candidates {words}{given}",
        f"{_program()} tree host-1{given}",
    ]


def _program() -> str:
    """Return how this program was called, if it was by its name."""
    called = Path(sys.argv[0])
    return sys.argv[0] if called.name == "treeclaim" and called.parent != Path() else "treeclaim"


@contextmanager
def _service(folder: Path) -> Iterator[str]:
    """Run `treeclaim serve` on a free port with a database in a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The demo's service must not use the configuration of another service.
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
                told = log.read_text(errors="replace").splitlines()
                if process.poll() is not None:
                    raise CommandError("the service did not start:", *told) from error
                if time.monotonic() > deadline:
                    within = f"the service did not start within {_START_SECONDS} seconds:"
                    raise CommandError(within, *told) from error
                time.sleep(_PAUSE)
            else:
                return
