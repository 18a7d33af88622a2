# SPDX-License-Identifier: Apache-2.0
"""The files in deploy/, checked as far as it goes without a cluster and a container registry."""

import json
import os
import re
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml

from tests.paths import ROOT
from treeclaim.cli.serve import Serve
from treeclaim.config import list_options
from treeclaim.server.bounds import END_SECONDS, GRACE_SECONDS

DEPLOY = ROOT / "deploy"
KNOWN = {
    f"OS_{(group or 'DEFAULT').upper()}__{option.name.upper()}"
    for group, options in list_options()
    for option in options
} | {"OS_KEYSTONE_AUTHTOKEN__PASSWORD", "OS_DEFAULT__USE_JSON"}


@pytest.fixture(scope="module")
def documents():
    """The documents of the Kubernetes manifest by their kind; there is one of each."""
    listed = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    by_kind = {document["kind"]: document for document in listed}
    assert len(by_kind) == len(listed)
    return by_kind


def test_kubernetes_manifest_is_valid(documents):
    assert documents.keys() >= {"Deployment", "Service", "Secret", "ConfigMap"}
    for document in documents.values():
        kubernetes_validate.validate(document, "1.30", strict=True)


def test_kubernetes_manifest_uses_existing_command_and_options(documents):
    (container,) = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == "serve"
    options = Serve().get_parser("treeclaim serve").parse_args(container["args"][1:])
    assert options.config_files == ["/etc/placement/placement.conf"]
    assert set(documents["Secret"]["stringData"]) <= KNOWN


def test_pod_termination_allows_the_full_stop_time(documents):
    """Requests come until the pod is out of the service; then those that have begun are finished."""
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    program, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert program == "sleep"
    ends = GRACE_SECONDS + END_SECONDS
    assert pod["terminationGracePeriodSeconds"] > int(seconds) + ends + END_SECONDS
    unit = (DEPLOY / "treeclaim.service").read_text()
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[1]) > ends + END_SECONDS


@pytest.mark.slow
def test_the_configuration_in_the_manifest_is_accepted(documents, tmp_path):
    path = tmp_path / "placement.conf"
    path.write_text(documents["ConfigMap"]["data"]["placement.conf"])
    environment = {"PATH": os.environ["PATH"]} | documents["Secret"]["stringData"]
    subprocess.run(
        [sys.executable, "-m", "treeclaim", "config", "check", "--config-file", str(path)],
        check=True,
        env=environment,
    )


@pytest.mark.usefixtures("systemd")
def test_systemd_accepts_the_unit(tmp_path):
    unit = (DEPLOY / "treeclaim.service").read_text()
    # The program and the account are the operator's; everything else is judged as it is.
    unit = unit.replace("/opt/treeclaim/bin/treeclaim", sys.executable)
    unit = unit.replace("User=placement", "User=root").replace("Group=placement", "Group=root")
    path = tmp_path / "treeclaim.service"
    path.write_text(unit)
    judged = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stderr
    assert "treeclaim.service" not in judged.stderr


def test_unit_may_write_to_stock_log_and_state_folders():
    unit = (DEPLOY / "treeclaim.service").read_text()
    for folders in ("LogsDirectory", "StateDirectory"):
        assert "placement" in re.search(rf"^{folders}=(.*)$", unit, re.MULTILINE)[1].split()


def test_compose_file_refers_to_existing_files():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = compose["services"]["treeclaim"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert set(service["environment"]) <= KNOWN
    assert set(service["depends_on"]) <= set(compose["services"])
    volumes = [
        volume.split(":")[0]
        for part in compose["services"].values()
        for volume in part.get("volumes", [])
    ]
    assert set(volumes) == set(compose["volumes"])


def test_containerfile_copies_existing_files_and_drops_privileges():
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    for words in lines:
        if words[0] == "COPY" and not words[1].startswith("--from"):
            assert all((ROOT / word).exists() for word in words[1:-1]), words
    users = [words[1] for words in lines if words[0] == "USER"]
    assert users[-1:] == ["8778"]
    command = json.loads(text.split("\nCMD ")[-1].splitlines()[0])
    assert command[0] == "serve"
    Serve().get_parser("treeclaim serve").parse_args(command[1:])


def test_dashboard_uses_existing_metrics(known_metrics):
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    names = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"treeclaim_\w+", target["expr"])
    }
    assert names <= known_metrics
    assert names >= {"treeclaim_resource_free", "treeclaim_fits"}
