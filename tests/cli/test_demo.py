# SPDX-License-Identifier: Apache-2.0
"""`treeclaim demo`: from nothing to a claim, with the package alone."""

import re
import signal
import subprocess

import httpx
import pytest

from tests.cli.processes import call, run
from tests.paths import EXAMPLE
from tests.servers import TREECLAIM, usual_environment


@pytest.mark.slow
def test_demo_shows_a_cloud_queries_an_explanation_and_a_claim(tmp_path):
    result = run(usual_environment(tmp_path), "demo")
    assert (result.returncode, result.stderr) == (0, "")
    shown = result.stdout
    assert "host-1_numa0_fpga" in shown
    assert shown.count("\n3 candidates, which is the limit") == 3
    assert "None of 7 trees matches" in shown
    assert re.search(r"Consumer +\| [0-9a-f-]{36} ", shown)
    assert "1 FPGA" in shown
    assert "12 placed" in shown
    assert re.search(r"\| gpu +\| +\d+ \|", shown)
    assert "make " not in shown
    assert "host-2_numa0_nic_red " not in shown.split("1. ")[0], "one tree of each kind is enough"


@pytest.mark.slow
def test_demo_keep_prints_the_url_of_its_pages_and_serves_them(tmp_path):
    command = [*TREECLAIM, "demo", "--keep"]
    environment = usual_environment(tmp_path)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = next(line for line in process.stdout if "Look at its pages" in line)
            url = re.search(r"http://[0-9.:]+/ui/", line)[0]
            assert "<title>Treeclaim</title>" in httpx.get(url).text
            endpoint = {"TREECLAIM_ENDPOINT": url.removesuffix("/ui/")}
            drained = call(environment | endpoint, "plan", "drain", "host-1").stdout
            assert "the goal is reached; consumers left: 3 to 0" in drained
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()


def test_package_contains_the_example_topology(tmp_path):
    environment = usual_environment(tmp_path)
    assert call(environment, "demo", "--topology").stdout == EXAMPLE.read_text()
