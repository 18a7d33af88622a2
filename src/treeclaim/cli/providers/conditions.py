# SPDX-License-Identifier: Apache-2.0
"""`condition set`, `unset` and `list` (contract page 102)."""

import argparse

from treeclaim.cli.command import Cell, CloudAction, CloudLister, Result
from treeclaim.cli.names import TREE_OPTION, build_tree_filter, find_provider
from treeclaim.cli.output import print_lines
from treeclaim.client import Client
from treeclaim.client.session import escape_url
from treeclaim.model.parts import CONDITIONS
from treeclaim.model.provider import EFFECTS

_CONDITION = """
    PROVIDER  name or uuid
    KEY       key of the condition, such as CLEANING
"""


class SetCondition(CloudAction):
    """Stop new allocations from a provider and everything below it.

    The condition replaces the one with the same key.
    """

    example = "host-1 CLEANING --reason 'new firmware'"

    arguments = f"""
        {_CONDITION}
        --effect {"|".join(EFFECTS)} = {next(iter(EFFECTS))}  no_new: no new allocations; leave: plans and audit also list the consumers there
        --reason TEXT  a note for operators
        --until TIME   end of the condition, such as 2026-12-01T08:00:00Z (default: never)
        --on-use       take effect with the first write that increases usage there
        --dry-run      only print the numbers of affected providers and consumers
    """

    def act(self, client: Client, options: argparse.Namespace) -> None:
        path = _make_path(client, options) + ("?dry_run=true" if options.dry_run else "")
        body = {
            "effect": options.effect,
            "reason": options.reason or "",
            "until": options.until,
            "on_use": options.on_use,
        }
        counts = client.call("PUT", path, body)
        if options.dry_run:
            print_lines(
                f"would affect {counts['providers']} providers with {counts['consumers']} "
                "consumers"
            )


class UnsetCondition(CloudAction):
    """Remove a condition from a provider, so that new allocations are possible again."""

    example = "host-1 CLEANING"

    arguments = _CONDITION

    def act(self, client: Client, options: argparse.Namespace) -> None:
        client.call("DELETE", _make_path(client, options))


class ListConditions(CloudLister):
    """List the conditions of providers."""

    example = "--in-tree host-1"

    arguments = TREE_OPTION

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        filters = build_tree_filter(client, options)
        states = client.provider_states([CONDITIONS.name], **filters)
        providers = [state for state in states if state[CONDITIONS.name]]
        rows = [
            (
                provider["name"],
                provider["uuid"],
                key,
                condition["effect"],
                condition["until"],
                Cell(condition["began"], lambda began: ["yes" if began else "once it is used"]),
                condition["reason"],
            )
            for provider in providers
            for key, condition in provider[CONDITIONS.name].items()
        ]
        columns = ("Provider", "UUID", "Condition", "Effect", "Until", "Began", "Reason")
        return Result(
            columns,
            rows,
            {"providers": providers},
            notes=() if rows else ["No provider has a condition."],
        )


def _make_path(client: Client, options: argparse.Namespace) -> str:
    provider = find_provider(client, options.provider)["uuid"]
    return f"/treeclaim/providers/{provider}/conditions/{escape_url(options.key)}"
