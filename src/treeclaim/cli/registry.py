# SPDX-License-Identifier: Apache-2.0
"""The commands: the module of each, and its line of help.

Only the module of the command given is imported: a client of a service has no use for the service, which
takes seconds to import; the help of the program imports none.
"""

import argparse
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command.

    Attributes:
        module: The module below `treeclaim.cli` that adds the command to a parser.
        help: What the command does, in a line.
    """

    module: str
    help: str


COMMANDS = {
    "serve": Command("serve", "run the service; SIGHUP reloads it without losing a request"),
    "db": Command("service.database", "create, upgrade and tidy up the database"),
    "upgrade": Command(
        "service.upgrade", "check whether something has to be done before an upgrade"
    ),
    "config": Command("service.configured", "show the options that exist, and those in effect"),
    "policy": Command("service.configured", "show who may do what"),
    "admin": Command("admin", "serve liveness, readiness and metrics"),
    "load": Command("cloud.changing.load", "load provider trees from a file"),
    "copy": Command(
        "cloud.changing.load",
        "copy everything from one Placement API endpoint to another, and compare the two",
    ),
    "edit": Command(
        "cloud.changing.edit", "edit a provider's inventories, traits, aggregates and attributes"
    ),
    "candidates": Command("cloud.asking.questions", "ask which providers can satisfy a request"),
    "explain": Command("cloud.asking.questions", "say why a request has no candidate"),
    "fit": Command("cloud.asking.questions", "count how many consumers of a request still fit"),
    "place": Command(
        "cloud.changing.claims", "find places for consumers and claim them, all or nothing"
    ),
    "claim": Command("cloud.changing.claims", "claim a candidate for a consumer"),
    "release": Command("cloud.changing.claims", "release all allocations of a consumer"),
    "hold": Command("cloud.changing.holds", "reserve capacity for later claims: create, list"),
    "condition": Command(
        "cloud.changing.conditions",
        "stop new allocations from a provider, or allow them again: set, unset, list",
    ),
    "requests": Command(
        "cloud.changing.nova", "store the requests by which consumers were placed"
    ),
    "names": Command(
        "cloud.changing.nova", "names of aggregates: list, set, or take them from Nova"
    ),
    "mix": Command(
        "cloud.changing.mixes",
        "mixes: requests that the cloud expects, for which orders and plans keep room",
    ),
    "tree": Command("cloud.looking.tree", "show provider trees"),
    "show": Command("cloud.looking.show", "show a provider or a consumer"),
    "usage": Command("cloud.looking.show", "show what a project uses"),
    "watch": Command("cloud.looking.show", "show changes as they happen"),
    "audit": Command("cloud.audit", "find what is wrong with the records, and repair it"),
    "survival": Command(
        "cloud.survival",
        "say whether all consumers would find a place elsewhere if hosts or racks failed",
    ),
    "drain": Command("cloud.moves", "show which moves empty hosts"),
    "make-room": Command("cloud.moves", "show which moves make room for more"),
    "defragment": Command("cloud.moves", "show which moves make most room for a mix"),
    "compare": Command(
        "cloud.compare", "compare the answers of two services, such as Placement and Treeclaim"
    ),
    "completion": Command("completion", "print a completion script for a shell"),
    "demo": Command("demo", "show the main job on a temporary database"),
}
"""By their first word, in the order of the help."""


class _Commands:
    """Adds commands to a parser with their line of help, which is the least description of a command."""

    def __init__(self, subparsers: Any) -> None:
        self._subparsers = subparsers

    def add_parser(self, word: str, **options: Any) -> argparse.ArgumentParser:
        """Add a command."""
        line = COMMANDS[word].help
        options.setdefault("description", f"{line[0].upper()}{line[1:]}.")
        parser: argparse.ArgumentParser = self._subparsers.add_parser(word, help=line, **options)
        return parser


def add_commands(subparsers: Any, words: Iterable[str]) -> None:
    """Add the commands of the modules that have some words, with their options."""
    for module in dict.fromkeys(COMMANDS[word].module for word in words):
        import_module(f"treeclaim.cli.{module}").add_to(_Commands(subparsers))


def add_lines(subparsers: Any) -> None:
    """Add all commands without their options, for the help of the program."""
    for word in COMMANDS:
        _Commands(subparsers).add_parser(word)
