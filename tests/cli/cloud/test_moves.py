# SPDX-License-Identifier: Apache-2.0
"""`plan drain`, `make-room` and `defragment`: their output, and their exit status."""

import json
import subprocess

import pytest

from tests.api.resources.planning.clouds import host, uuid_of
from tests.cli.processes import call
from tests.cli.services import client_in, hold, output_of, served_hosts
from tests.servers import TREECLAIM


@pytest.fixture
def environment(tmp_path):
    hosts = [host("a", VCPU=8), host("b", VCPU=8), host("c", VCPU=2)]
    with served_hosts(tmp_path, *hosts) as found:
        for name, at, amount in (("i1", "a", 4), ("i2", "a", 2), ("i3", "b", 3)):
            write(found, name, at, amount, None)
        yield found


def write(environment, name, at, amount, generation):
    request = [f"resources=VCPU:{amount}"]
    members = {"consumer_generation": generation, "request": request}
    hold(environment, uuid_of(name), uuid_of(at), amount, **members)


@pytest.mark.slow
def test_drain_prints_a_table_of_moves(environment):
    text = output_of(environment, "plan", "drain", "a", code=0)
    assert "2 moves (at least 2 needed); the goal is reached; left: 2 to 0" in text
    row = next(line for line in text.splitlines() if uuid_of("i1") in line)
    assert row.split()[3:] == [uuid_of("i1"), "|", "a", "|", "b", "|"]


@pytest.mark.slow
def test_incomplete_drain_has_exit_status_1(environment):
    text = output_of(environment, "plan", "drain", "b", "a", "--explain", code=1)
    assert "(no_room)" in text
    assert "the goal is not reached, and cannot be" in text


@pytest.mark.slow
def test_drain_moves_consumers_off_hosts_with_leave_condition(environment):
    assert "0 moves" in output_of(environment, "plan", "drain", "--leave", code=0)
    failing = ("condition", "set", "a", "FAILING", "--effect", "leave")
    output_of(environment, *failing, code=0)
    output_of(environment, "condition", "set", "b", "CLEANING", code=0)
    assert "(no_room)" in output_of(environment, "plan", "drain", "--leave", code=1)
    output_of(environment, "condition", "unset", "b", "CLEANING", code=0)
    text = output_of(environment, "plan", "drain", "--leave", code=0)
    assert "2 moves (at least 2 needed); the goal is reached; left: 2 to 0" in text
    # What waits for a use asks nobody to leave.
    output_of(environment, *failing, "--on-use", code=0)
    assert "0 moves" in output_of(environment, "plan", "drain", "--leave", code=0)


@pytest.mark.parametrize(
    ("arguments", "message"), [((), "HOST"), (("a", "--leave"), "not allowed")]
)
def test_drain_requires_either_hosts_or_leave_option(environment, arguments, message):
    result = call(environment, "plan", "drain", *arguments)
    assert result.returncode == 2
    assert message in result.stderr


@pytest.mark.slow
def test_make_room_plans_moves_for_the_request(environment):
    text = output_of(environment, "plan", "make-room", "resources=VCPU:6", "--amount", "1", code=0)
    assert "fit: 0 to 1" in text
    assert "0 moves" in output_of(environment, "plan", "make-room", "resources=VCPU:2", code=0)
    output_of(
        environment,
        "plan",
        "make-room",
        "resources=VCPU:6",
        "--max-moves",
        "1",
        "--amount",
        "2",
        code=1,
    )


@pytest.mark.slow
def test_a_cloud_is_defragmented_for_a_mix(environment):
    with client_in(environment) as client:
        mix = {"requests": {"x": {"query": "resources=VCPU:8", "weight": 2}}}
        client.call("PUT", "/treeclaim/mixes/m", json=mix, extended=True)
    text = output_of(environment, "plan", "defragment", "--mix", "m", "--max-moves", "5", code=0)
    assert "fit: 0 to 2" in text
    document = json.loads(
        output_of(
            environment, "plan", "defragment", "--mix", "m", "--empty-trees", "-f", "json", code=0
        )
    )
    assert (document["optimal"], document["after"]["fits"]) == (True, 2)


@pytest.mark.slow
def test_commands_for_nova_are_printed(environment):
    first = output_of(environment, "plan", "drain", "a", "--nova", code=0).splitlines()[0]
    assert first.startswith("openstack server migrate --live-migration --host b ")
    cold = output_of(environment, "plan", "drain", "a", "--nova", "--cold", code=0).splitlines()[0]
    assert cold.startswith("openstack server migrate --host b ")


@pytest.mark.slow
def test_a_failure_is_exit_status_2(environment):
    output_of(environment, "plan", "drain", "nobody", code=2)
    output_of(environment, "plan", "make-room", "resources=NOTHING:1", code=2)
    output_of(environment, "plan", "defragment", "--mix", "nothing", code=2)
    output_of(
        {**environment, "TREECLAIM_ENDPOINT": "http://127.0.0.1:1"}, "plan", "drain", "a", code=2
    )


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
