# SPDX-License-Identifier: Apache-2.0
"""`plan drain --follow`, while another client does each step."""

import subprocess

import pytest

from tests.api.resources.planning.clouds import host, uuid_of
from tests.cli.services import claim_vcpu, run_service_with_hosts
from tests.servers import TREECLAIM


@pytest.fixture
def environment(tmp_path):
    hosts = [host("a", VCPU=8), host("b", VCPU=8), host("c", VCPU=2)]
    with run_service_with_hosts(tmp_path, *hosts) as variables:
        for name, at, amount in (("i1", "a", 4), ("i2", "a", 2), ("i3", "b", 3)):
            write(variables, name, at, amount, None)
        yield variables


def write(environment, name, at, amount, generation):
    request = [f"resources=VCPU:{amount}"]
    members = {"consumer_generation": generation, "request": request}
    claim_vcpu(environment, uuid_of(name), uuid_of(at), amount, **members)


@pytest.mark.slow
def test_follow_prints_a_step_after_the_previous_one_is_done(environment):
    command = subprocess.Popen(
        [*TREECLAIM, "plan", "drain", "a", "--follow"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    with command:
        try:
            names = {uuid_of("i1"): ("i1", 4), uuid_of("i2"): ("i2", 2)}
            for number in ("1.", "2."):
                step, consumer, source, arrow, target = command.stdout.readline().split()
                assert (step, source, arrow) == (number, "a", "->")
                name, amount = names.pop(consumer.rstrip(":"))
                write(environment, name, target, amount, 1)
            assert "the goal is reached" in command.stdout.readline()
            assert command.wait(timeout=60) == 0
        finally:
            command.kill()
