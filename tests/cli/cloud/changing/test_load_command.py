# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load` against a running service: omitted members, empty members, the diff."""

import re
import signal
import subprocess
import uuid

import httpx
import pytest

from tests.cli.processes import call
from tests.cli.services import run_successful_command
from tests.proxy import Proxy
from tests.servers import TREECLAIM, eventually
from treeclaim.client.session import BATCH


def interrupted(process):
    """Return the output of a process after Ctrl-C, which is repeated if the first signal came too early.

    Python checks for signals between bytecodes. A signal between the last check and a blocking system call is handled
    when the call returns, or when another signal interrupts it.
    """
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=20)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=20)[1]


PRUNED = """
providers:
- name: pruned
  inventories: {{CUSTOM_SLICE: 7, VCPU: 8}}
  children:
  - {{name: used, inventories: {{PCPU: 4}}, children: [{{name: unused-below-used}}]}}
  - name: with-used-child
    inventories: {{DISK_GB: 9}}
    children: [{{name: used-child, inventories: {{VGPU: 2}}}}, {{name: unused-child}}]
  - {{name: unused}}
  - name: loses-inventories
    inventories: {{PCPU: 4, VGPU: 4}}
    children: []
  - {{name: consumes, inventories: {{CUSTOM_PART: {{total: 7, consumes: [{consumed}]}}}}}}
"""
LESS = """
providers:
- name: pruned
  inventories: {VCPU: 8}
  children:
  - {name: loses-inventories, inventories: {PCPU: 4}, children: []}
"""


def test_prune_dry_run_matches_the_real_run(environment, client, tmp_path):
    file = tmp_path / "pruned.yaml"
    file.write_text(
        PRUNED.format(consumed="{provider: pruned, resource_class: CUSTOM_SLICE, amount: 1}")
    )
    run_successful_command(environment, "load", str(file))
    by_name = {row["name"]: row["uuid"] for row in client.providers()}
    held = {
        by_name["used"]: {"resources": {"PCPU": 1}},
        by_name["used-child"]: {"resources": {"VGPU": 1}},
        by_name["loses-inventories"]: {"resources": {"VGPU": 2}},
    }
    client.claim(str(uuid.uuid4()), {"allocations": held}, project_id="p", user_id="u")
    file.write_text(LESS)
    promised = call(environment, "load", str(file), "--prune", "--dry-run")
    assert len(client.providers(in_tree=by_name["pruned"])) == 9
    result = call(environment, "load", str(file), "--prune")
    assert (promised.returncode, result.returncode) == (1, 1)
    assert (
        promised.stdout.splitlines()[-1].replace("would be ", "") == result.stdout.splitlines()[-1]
    )
    assert (
        find_refused_names(promised)
        == find_refused_names(result)
        == {
            "used",
            "with-used-child",
            "used-child",
            "loses-inventories",
            "pruned",
        }
    )
    remaining = {row["name"] for row in client.providers(in_tree=by_name["pruned"])}
    assert remaining == {"pruned", "used", "with-used-child", "used-child", "loses-inventories"}
    assert re.search("loses-inventories .*VGPU.*in use", promised.stderr)
    assert "used: cannot be deleted, as 1 PCPU of it are in use" in promised.stderr


def find_refused_names(done):
    """Return the names of providers that a command reports as refused."""
    return set(re.findall(r"^refused: ([a-z-]+)", done.stderr, re.MULTILINE))


@pytest.mark.slow
def test_a_dash_reads_standard_input(environment, client):
    result = subprocess.run(
        [*TREECLAIM, "load", "-"],
        env=environment,
        input="providers: [{name: from-standard-input}]",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "1 created" in result.stdout
    assert client.providers(name="from-standard-input")


@pytest.mark.slow
def test_interrupted_load_reports_progress_and_resumes(environment, client, tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text(
        "providers: [{name: 'many-{n}', count: 5000, traits: [HW_NUMA_ROOT], "
        "inventories: {VCPU: 8}}]"
    )
    proxy = Proxy(httpx.URL(environment["TREECLAIM_ENDPOINT"]).port)
    proxy.silent_at, proxy.silent_in = b"POST /treeclaim/providers ", 3
    running = subprocess.Popen(
        [*TREECLAIM, "load", str(file)],
        env=environment | {"TREECLAIM_ENDPOINT": proxy.url(environment["TREECLAIM_ENDPOINT"])},
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: proxy.is_silent or running.poll() is not None, "the third write")
    message = interrupted(running)
    proxy.close()
    assert running.returncode == 130
    assert "Traceback" not in message
    assert f"Interrupted: {2 * BATCH} of 5000" in message
    assert "again" in message
    shown = run_successful_command(environment, "load", str(file))
    created, changed, unchanged = map(int, re.findall(r"(\d+) (?:created|changed|unch)", shown))
    assert created + changed + unchanged == 5000
    assert unchanged >= 2 * BATCH
