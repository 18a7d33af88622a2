# SPDX-License-Identifier: Apache-2.0
"""A run fails where a test uses what not every machine has, or is skipped without a reason from the list."""

import subprocess
import sys

import pytest

from tests.paths import ROOT

CASES = """
import socket, subprocess
import pytest
from tests.databases import Mariadb

def test_own_python_is_started():
    import sys
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_program_is_started():
    try:
        subprocess.run(["ls"], check=True)
    except Exception:
        pass

def test_child_finds_program():
    subprocess.run(["sh", "-c", "ls"], check=True)

def test_other_host_is_asked():
    with socket.socket() as client:
        client.settimeout(1)
        client.connect(("192.0.2.1", 80))

def test_name_is_resolved():
    socket.getaddrinfo("host.invalid", 80)

def test_server_is_started_without_its_fixture():
    Mariadb()

def test_skip_has_a_reason_of_its_own():
    pytest.skip("not today")

def test_skip_has_a_listed_reason():
    pytest.skip("SQLite has one lock")

def test_software_is_missing():
    pytest.skip("missing: apt-get install nothing")
"""


@pytest.mark.slow
@pytest.mark.parametrize("missing", [(), ("--nothing-missing",)])
def test_quick_tier_fails_forbidden_tests(tmp_path, missing):
    file = tmp_path / "test_cases.py"
    file.write_text(CASES)
    options = [
        *["-p", "tests.conftest", "-p", "no:cacheprovider", "-rA", "-q", "--tier=quick"],
        *missing,
    ]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", *options, file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = {
        line.split("::")[1].split(" ")[0]: line.split(" ")[0]
        for line in result.stdout.splitlines()
        if line.startswith(("PASSED", "FAILED", "ERROR")) and "::" in line
    }
    assert outcomes.pop("test_own_python_is_started") == "PASSED", result.stdout
    # The error is from the teardown, which reports the violation that the test hid.
    assert set(outcomes.values()) <= {"FAILED", "ERROR"}, result.stdout
    expected = {
        "test_program_is_started",
        "test_child_finds_program",
        "test_other_host_is_asked",
        "test_name_is_resolved",
        "test_server_is_started_without_its_fixture",
        "test_skip_has_a_reason_of_its_own",
    }
    assert outcomes.keys() == expected | ({"test_software_is_missing"} if missing else set())
