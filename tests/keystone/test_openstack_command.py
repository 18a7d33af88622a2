# SPDX-License-Identifier: Apache-2.0
"""The `openstack` command with its placement subcommands, against a service behind Keystone."""

import json
import subprocess
import sys
import uuid
from importlib.metadata import entry_points

import pytest

from tests.environments import environment_of
from tests.openstack_shell import Shell
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

_LIST_SUBCOMMANDS = """\
from importlib.metadata import entry_points
for entry in entry_points(group="openstack.placement.v1"):
    print(entry.name.replace("_", " "))
"""


def _programs():
    return environment_of("clients", "python-openstackclient", "osc-placement") / "bin"


class Openstack:
    """Runs the command, and remembers which subcommands were run."""

    def __init__(self, environment):
        self.environment = environment
        self.programs = _programs()
        self.subcommands = self._list_subcommands()
        self.used = set()
        self._shell = Shell(self.programs / "python", environment, "openstack.placement.v1")

    def close(self):
        """End the process that runs commands."""
        self._shell.close()

    def _list_subcommands(self):
        listed = subprocess.run(
            [str(self.programs / "python"), "-c", _LIST_SUBCOMMANDS],
            check=True,
            capture_output=True,
            text=True,
        )
        return listed.stdout.splitlines()

    def run(self, command_words, *arguments, version="1.39"):
        """Run a subcommand to its end."""
        assert command_words in self.subcommands
        self.used.add(command_words)
        command = [f"--os-placement-api-version={version}", *command_words.split()]
        command += [str(argument) for argument in arguments]
        return self._shell.run(*command)

    def do(self, command_words, *arguments, version="1.39"):
        """Run a subcommand that prints nothing of interest."""
        result = self.run(command_words, *arguments, version=version)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def get(self, command_words, *arguments, version="1.39"):
        """Run a subcommand, and return what it shows."""
        return json.loads(self.do(command_words, *arguments, "--format=json", version=version))


@pytest.fixture(scope="module")
def ids():
    """Names and numbers that the steps share."""
    return {name: str(uuid.uuid4()) for name in ("host", "disk", "aggregate", "consumer", "user")}


@pytest.fixture(scope="module")
def openstack(keystone, service, tmp_path_factory):
    """The command with an administrator's login."""
    folder = tmp_path_factory.mktemp("openstack")
    openstack = Openstack(usual_environment(folder, **keystone.login()))
    yield openstack
    openstack.close()


def test_every_placement_subcommand_works(openstack, ids, keystone):
    _classes(openstack)
    _traits(openstack)
    _providers(openstack, ids)
    _inventories(openstack, ids)
    _provider_traits(openstack, ids)
    _aggregates(openstack, ids)
    _candidates(openstack, ids)
    _allocations(openstack, ids, keystone.project_ids["department"])
    _deletions(openstack, ids)
    assert openstack.used == set(openstack.subcommands)


def _classes(openstack):
    openstack.do("resource class create", "CUSTOM_FIRST")
    openstack.do("resource class set", "CUSTOM_SECOND")
    assert openstack.get("resource class show", "CUSTOM_FIRST") == {"name": "CUSTOM_FIRST"}
    names = {row["name"] for row in openstack.get("resource class list")}
    assert {"VCPU", "CUSTOM_FIRST", "CUSTOM_SECOND"} <= names
    openstack.do("resource class delete", "CUSTOM_SECOND")
    refused = openstack.run("resource class delete", "VCPU")
    assert refused.returncode == 1
    assert "VCPU" in refused.stderr


def _traits(openstack):
    openstack.do("trait create", "CUSTOM_BLUE")
    assert openstack.get("trait show", "CUSTOM_BLUE") == {"name": "CUSTOM_BLUE"}
    listed = openstack.get("trait list", "--name=startswith:CUSTOM_")
    assert {"name": "CUSTOM_BLUE"} in listed


def _providers(openstack, ids):
    created = openstack.get("resource provider create", "host", f"--uuid={ids['host']}")
    assert created["uuid"] == ids["host"]
    child = ["disk", f"--uuid={ids['disk']}", f"--parent-provider={ids['host']}"]
    assert openstack.get("resource provider create", *child)["root_provider_uuid"] == ids["host"]
    openstack.do("resource provider set", ids["disk"], "--name=disks")
    shown = openstack.get("resource provider show", ids["disk"])
    assert (shown["name"], shown["parent_provider_uuid"]) == ("disks", ids["host"])
    tree = openstack.get("resource provider list", f"--in-tree={ids['disk']}")
    assert {row["uuid"] for row in tree} == {ids["host"], ids["disk"]}


def _inventories(openstack, ids):
    options = ["--resource=VCPU=8", "--resource=VCPU:max_unit=4", "--resource=MEMORY_MB=4096"]
    openstack.do("resource provider inventory set", ids["host"], *options)
    amended = ["--amend", "--resource=VCPU:allocation_ratio=2"]
    openstack.do("resource provider inventory set", ids["host"], *amended)
    openstack.do("resource provider inventory set", ids["disk"], "--resource=DISK_GB=50")
    openstack.do("resource provider inventory class set", ids["disk"], "DISK_GB", "--total=100")
    disks = openstack.get("resource provider inventory show", ids["disk"], "DISK_GB")
    assert disks["total"] == 100
    shown = openstack.get("resource provider inventory show", ids["host"], "VCPU")
    assert (shown["total"], shown["max_unit"], shown["allocation_ratio"]) == (8, 4, 2.0)
    listed = openstack.get("resource provider inventory list", ids["host"])
    assert {row["resource_class"] for row in listed} == {"VCPU", "MEMORY_MB"}
    one_class = ["--resource-class=MEMORY_MB"]
    openstack.do("resource provider inventory delete", ids["host"], *one_class)
    assert len(openstack.get("resource provider inventory list", ids["host"])) == 1


def _provider_traits(openstack, ids):
    options = ["--trait=CUSTOM_BLUE", "--trait=HW_CPU_X86_AVX2"]
    openstack.do("resource provider trait set", ids["host"], *options)
    listed = openstack.get("resource provider trait list", ids["host"])
    assert {row["name"] for row in listed} == {"CUSTOM_BLUE", "HW_CPU_X86_AVX2"}
    either = ["--required=CUSTOM_BLUE,HW_CPU_X86_SSE", "--forbidden=HW_NIC_DCB_PFC"]
    rows = openstack.get("resource provider list", *either)
    assert [row["uuid"] for row in rows] == [ids["host"]]


def _aggregates(openstack, ids):
    generation = openstack.get("resource provider show", ids["host"])["generation"]
    new = [f"--aggregate={ids['aggregate']}", f"--generation={generation}"]
    openstack.do("resource provider aggregate set", ids["host"], *new)
    stale = openstack.run("resource provider aggregate set", ids["host"], *new)
    assert stale.returncode == 1
    assert "generation already changed" in stale.stderr
    listed = openstack.get("resource provider aggregate list", ids["host"])
    assert listed == [{"uuid": ids["aggregate"]}]
    members = openstack.get("resource provider list", f"--member-of={ids['aggregate']}")
    assert [row["uuid"] for row in members] == [ids["host"]]


def _candidates(openstack, ids):
    options = ["--resource=VCPU=1", "--resource=DISK_GB=10", "--required=CUSTOM_BLUE", "--limit=5"]
    rows = openstack.get("allocation candidate list", *options)
    assert {row["resource provider"] for row in rows} == {ids["host"], ids["disk"]}
    groups = ["--group=1", "--resource=VCPU=1", "--group=2", "--resource=DISK_GB=1"]
    grouped = openstack.get("allocation candidate list", *groups, "--group-policy=isolate")
    assert {row["resource provider"] for row in grouped} == {ids["host"], ids["disk"]}


def _allocations(openstack, ids, project):
    owner = [f"--project-id={project}", f"--user-id={ids['user']}", "--consumer-type=INSTANCE"]
    options = [f"--allocation=rp={ids['host']},VCPU=2", f"--allocation=rp={ids['disk']},DISK_GB=5"]
    openstack.do("resource provider allocation set", ids["consumer"], *options, *owner)
    shown = openstack.get("resource provider allocation show", ids["consumer"])
    assert {row["resource_provider"] for row in shown} == {ids["host"], ids["disk"]}
    with_allocations = openstack.get("resource provider show", ids["host"], "--allocations")
    assert ids["consumer"] in with_allocations["allocations"]
    used = openstack.get("resource provider usage show", ids["host"])
    assert used == [{"resource_class": "VCPU", "usage": 2}]
    # The command reads the answer of versions up to 1.37 only.
    of_project = openstack.get("resource usage show", project, version="1.37")
    assert {row["resource_class"]: row["usage"] for row in of_project} == {
        "VCPU": 2,
        "DISK_GB": 5,
    }
    openstack.do(
        "resource provider allocation unset", ids["consumer"], f"--provider={ids['disk']}"
    )
    assert len(openstack.get("resource provider allocation show", ids["consumer"])) == 1
    in_use = openstack.run("resource provider delete", ids["host"])
    assert in_use.returncode == 1
    openstack.do("resource provider allocation delete", ids["consumer"])
    assert openstack.get("resource provider allocation show", ids["consumer"]) == []


def _deletions(openstack, ids):
    openstack.do("resource provider trait delete", ids["host"])
    openstack.do("trait delete", "CUSTOM_BLUE")
    openstack.do("resource provider inventory delete", ids["host"])
    for provider in ("disk", "host"):
        openstack.do("resource provider delete", ids[provider])
    openstack.do("resource class delete", "CUSTOM_FIRST")


def test_the_command_agrees_on_a_version_by_itself(openstack):
    assert {"VCPU"} <= {row["name"] for row in openstack.get("resource class list", version="1")}


def test_login_without_permission_is_refused_with_the_reason(keystone, service, tmp_path):
    refused = subprocess.run(
        [_programs() / "openstack", "resource", "provider", "list"],
        env=usual_environment(tmp_path, **keystone.login("member", "department")),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert refused.returncode == 1
    assert "Policy does not allow" in refused.stderr


def test_plugin_commands_coexist_and_share_the_login(openstack, keystone):
    names = [
        entry.name.replace("_", " ") for entry in entry_points(group="openstack.treeclaim.v1")
    ]
    theirs = tuple(openstack.subcommands)
    assert names
    # A command hides another one that begins with the same words.
    assert not [name for name in names if name.startswith(theirs)]
    assert not [name for name in theirs if name.startswith(tuple(names))]
    openstack.do("resource provider create", "plugin-host")
    listed = subprocess.run(
        [sys.executable, "-m", "openstackclient.shell", "treeclaim", "tree", "--format=json"],
        env=openstack.environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "plugin-host" in {root["name"] for root in json.loads(listed.stdout)}
