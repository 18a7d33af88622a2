# SPDX-License-Identifier: Apache-2.0
"""Options that mean one thing have one name in all commands."""

import pytest

from tests.cli.processes import call


@pytest.mark.parametrize("command", ["fit", "place", "hold create", "plan make-room"])
def test_a_query_may_follow_an_option_of_any_command(environment, command):
    amount = () if command == "fit" else ("--amount", "2")
    dry = ("--dry-run",) if command in {"place", "hold create"} else ()
    assert call(environment, *command.split(), *amount, *dry, "resources=VCPU:1").returncode == 0


@pytest.mark.parametrize("command", ["fit", "survival"])
def test_domains_option_has_the_same_name_in_all_commands(environment, command):
    query = ("resources=VCPU:1",) if command == "fit" else ()
    assert call(environment, command, *query, "--domains", "tree").returncode in {0, 1}


@pytest.mark.parametrize("command", ["survival", "plan drain", "plan make-room", "claim", "place"])
def test_consumer_type_option_has_the_same_name_in_all_commands(environment, command):
    arguments = {
        "survival": (),
        "plan drain": ("host-1",),
        "plan make-room": ("resources=VCPU:1",),
        "claim": ("resources=VCPU:1",),
        "place": ("resources=VCPU:1",),
    }[command]
    result = call(environment, *command.split(), *arguments, "--consumer-type", "MIGRATION")
    assert result.returncode in {0, 1}, result.stderr
