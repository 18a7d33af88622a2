# SPDX-License-Identifier: Apache-2.0
"""`plan drain`, `make-room` and `defragment`: their output, and their exit status."""

import subprocess

import pytest

from tests.api.resources.planning.clouds import host, uuid_of
from tests.cli.processes import call
from tests.cli.services import hold, output_of, served_hosts
from tests.servers import TREECLAIM


@pytest.fixture
def environment(tmp_path):
    hosts = [host("a", VCPU=8), host("b", VCPU=8), host("c", VCPU=2)]
    with served_hosts(tmp_path, *hosts) as variables:
        for name, at, amount in (("i1", "a", 4), ("i2", "a", 2), ("i3", "b", 3)):
            write(variables, name, at, amount, None)
        yield variables


def write(environment, name, at, amount, generation):
    request = [f"resources=VCPU:{amount}"]
    members = {"consumer_generation": generation, "request": request}
    hold(environment, uuid_of(name), uuid_of(at), amount, **members)


@pytest.mark.slow
def test_incomplete_drain_has_exit_status_1(environment):
    text = output_of(environment, "plan", "drain", "b", "a", "--explain", code=1)
    assert "(no_room)" in text
    assert "the goal is not reached, and cannot be" in text


@pytest.mark.parametrize(
    ("arguments", "message"), [((), "HOST"), (("a", "--leave"), "not allowed")]
)
def test_drain_requires_either_hosts_or_leave_option(environment, arguments, message):
    result = call(environment, "plan", "drain", *arguments)
    assert result.returncode == 2
    assert message in result.stderr


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
