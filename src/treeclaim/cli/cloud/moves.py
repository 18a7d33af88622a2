# SPDX-License-Identifier: Apache-2.0
"""`treeclaim drain`, `make-room` and `defragment`: who has to move, and where to. They move nothing."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.asking.explanation import funnel_table
from treeclaim.cli.cloud.endpoint import add_endpoint_options, client_of
from treeclaim.cli.cloud.providers import find_provider
from treeclaim.cli.output import (
    failing_apart,
    object_of,
    positive,
    printer,
    say,
    say_document,
    text_in,
)
from treeclaim.client import Client
from treeclaim.client.planning import Plans
from treeclaim.client.states import need_of
from treeclaim.client.watching import watch
from treeclaim.model.parts import CONDITIONS


def add_given_option(command: argparse.ArgumentParser) -> None:
    """Add the option."""
    command.add_argument(
        "--given",
        type=Path,
        metavar="FILE",
        help="JSON file of assumptions: release, without, providers, place",
    )


def given_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """Read the file; None if none is named.

    Raises:
        CommandError: if it is not a JSON object.
    """
    if options.given is None:
        return None
    return object_of(options.given, text_in(options.given))


REACHED, NOT_REACHED = 0, 1
"""Exit codes."""

STATUS_HELP = (
    "It moves nothing. Exit status: 0 if the goal is reached, 1 if not, 2 if the command failed."
)

_Goal = Callable[[Client, argparse.Namespace], Mapping[str, Any]]


def add_drain_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say which hosts, or failing parts of hosts, are emptied."""
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "host", nargs="*", default=[], metavar="HOST", help="a provider, by name or uuid"
    )
    what.add_argument(
        "--leave",
        action="store_true",
        help="instead of hosts, empty the providers that have a condition with the effect leave",
    )
    _add_options(command)


def add_room_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say for what room is made."""
    command.add_argument(
        "query", metavar="QUERY", help="the query that is to fit, such as 'resources=VCPU:8'"
    )
    command.add_argument("--amount", type=positive, default=1, help="how many are to fit (1)")
    _add_options(command)


def add_defragment_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say for what room is kept."""
    command.add_argument(
        "--mix", required=True, metavar="NAME", help="the mix of expected requests"
    )
    command.add_argument(
        "--empty-trees", action="store_true", help="empty as many hosts as possible first"
    )
    _add_options(command)


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--max-moves", type=positive, default=100, help="most moves (100)")
    command.add_argument(
        "--consumer-type",
        action="append",
        metavar="TYPE",
        help="move only consumers of this type; may be repeated",
    )
    command.add_argument(
        "--cold",
        action="store_true",
        help="a move gives up the old place before it takes the new one",
    )
    command.add_argument(
        "--explain", action="store_true", help="say why the first consumer left has no room"
    )
    add_given_option(command)


def goal_of_drain(client: Client, options: argparse.Namespace) -> Mapping[str, Any]:
    """Return the goal that some hosts are empty, or all providers whose condition says `leave`.

    Raises:
        CommandError: for a host that does not exist.
        UnsupportedFeatureError: if the server knows no conditions.
    """
    if options.leave:
        client.versions.require(need_of(CONDITIONS))
        return {"leave": True}
    return {"empty": [find_provider(client, name)["uuid"] for name in options.host]}


def goal_of_room(_client: Client, options: argparse.Namespace) -> Mapping[str, Any]:
    """Return the goal that this many fit."""
    return {"fit": {"query": options.query, "amount": options.amount}}


def goal_of_defragment(_client: Client, options: argparse.Namespace) -> Mapping[str, Any]:
    """Return the goal that most of a mix fits."""
    return {"keep": {"mix": options.mix, "empty_trees": options.empty_trees}}


_COMMANDS: Mapping[str, tuple[Callable[[argparse.ArgumentParser], None], _Goal]] = {
    "drain": (add_drain_options, goal_of_drain),
    "make-room": (add_room_options, goal_of_room),
    "defragment": (add_defragment_options, goal_of_defragment),
}


def add_to(commands: Any) -> None:
    """Add the commands."""
    for name, (add_options, goal) in _COMMANDS.items():
        command = commands.add_parser(name, description=STATUS_HELP)
        add_options(command)
        shown = command.add_mutually_exclusive_group()
        shown.add_argument("--json", action="store_true", help="print the server's document")
        shown.add_argument(
            "--nova", action="store_true", help="print commands of the openstack client"
        )
        shown.add_argument(
            "--follow",
            action="store_true",
            help="print each step once the one before it is seen to be done",
        )
        add_endpoint_options(command)
        command.set_defaults(run=partial(run, goal))


def run(goal: _Goal, options: argparse.Namespace) -> int:
    """Ask, and show what is to be done."""
    with failing_apart(), client_of(options) as client:
        plan = asked(client, goal, options)
        if options.follow:
            _follow(client, plan)
    if options.json:
        say_document(plan)
    elif options.nova:
        say(*(nova_command(move, is_cold=options.cold) for move in plan["moves"]))
    else:
        _show(plan, is_followed=options.follow)
    return status_of(plan)


def asked(client: Client, goal: _Goal, options: argparse.Namespace) -> dict[str, Any]:
    """Return the server's document.

    Raises:
        CommandError: for what does not exist, and files that cannot be read.
    """
    return Plans(client).moves(
        goal(client, options),
        movable={"consumer_types": options.consumer_type} if options.consumer_type else None,
        max_moves=options.max_moves,
        both_at_once=not options.cold,
        explain=options.explain or None,
        given=given_of(options),
    )


def status_of(plan: Mapping[str, Any]) -> int:
    """Return the exit code."""
    return REACHED if plan["reached"] else NOT_REACHED


def names_of(roots: Sequence[Mapping[str, str]]) -> str:
    """Return the names of the roots of trees."""
    return ", ".join(root["name"] for root in roots)


def nova_command(move: Mapping[str, Any], *, is_cold: bool) -> str:
    """Return the command that moves a server of Nova to the host that a step names."""
    kind = "" if is_cold else "--live-migration "
    host = shlex.quote(names_of(move["to_roots"][:1]))
    return f"openstack server migrate {kind}--host {host} {move['consumer']}"


def summary_of(plan: Mapping[str, Any]) -> str:
    """Return a line about the whole."""
    least = plan["at_least"]
    bound = "" if least is None else f" (at least {least} needed)"
    verdict = "the goal is reached" if plan["reached"] else "the goal is not reached"
    if plan["proven"]:
        verdict += ", and cannot be"
    late = "" if plan["complete"] else "; there was no time to try all"
    count = len(plan["moves"])
    moves = "1 move" if count == 1 else f"{count} moves"
    return f"{moves}{bound}; {verdict}{late}; {_gained(plan)}"


def _gained(plan: Mapping[str, Any]) -> str:
    words = {"left": "left", "fits": "fit", "empty_trees": "empty trees"}
    before, after = plan["before"], plan["after"]
    return ", ".join(
        f"{word}: {before[key]} to {after[key]}"
        for key, word in words.items()
        if before[key] is not None
    )


def _show(plan: Mapping[str, Any], *, is_followed: bool) -> None:
    if plan["moves"] and not is_followed:
        table = Table("", "consumer", "from", "to", box=None)
        for number, move in enumerate(plan["moves"], 1):
            table.add_row(str(number), *_cells(move))
        printer().print(table)
    for stuck in plan["stuck"]:
        say(f"left: {stuck['consumer']} ({stuck['reason']})")
        if "explanation" in stuck:
            printer().print(funnel_table(stuck["explanation"]))
    say(summary_of(plan))


def _cells(move: Mapping[str, Any]) -> tuple[str, str, str]:
    return move["consumer"], names_of(move["from_roots"]), names_of(move["to_roots"])


def _follow(client: Client, plan: Mapping[str, Any]) -> None:
    """Print each step when the one before it is done."""
    # Where the changes begin is known before anybody looks whether a step is done.
    cursor = client.call("GET", "/treeclaim/changes", extended=True).json()["cursor"]
    changes = watch(client, cursor)
    for number, move in enumerate(plan["moves"], 1):
        consumer, source, target = _cells(move)
        say(f"{number}. {consumer}: {source} -> {target}", flush=True)
        while not _is_done(client, move):
            next(changes)


def _is_done(client: Client, move: Mapping[str, Any]) -> bool:
    held = client.call("GET", f"/allocations/{move['consumer']}").json()["allocations"]
    return _amounts(held) == _amounts(move["to"])


def _amounts(allocations: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    return {uuid: dict(allocation["resources"]) for uuid, allocation in allocations.items()}


def rows_of(plan: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each step."""
    for number, move in enumerate(plan["moves"], 1):
        yield number, *_cells(move)
