# SPDX-License-Identifier: Apache-2.0
"""`plan drain`, `make-room` and `defragment`, which list moves without making them."""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from treeclaim.cli.arguments import declare_arguments
from treeclaim.cli.command import CloudLister, Result
from treeclaim.cli.names import find_provider, resolve_providers
from treeclaim.cli.output import FAILED, format_count, parse_object, print_lines, read_text
from treeclaim.cli.query_arguments import QUERY_ARGUMENTS
from treeclaim.cli.search.explanation import format_funnel
from treeclaim.client import Client
from treeclaim.client.client import amounts_by_provider
from treeclaim.client.watching import watch

GIVEN_OPTION = """
    --given FILE  JSON file of assumptions: release, without, providers, place
"""


def read_assumptions(options: argparse.Namespace) -> dict[str, Any]:
    """Return the assumptions of `--given` as a member of a body; empty without the option."""
    if options.given is None:
        return {}
    return {"given": parse_object(options.given, read_text(options.given))}


_PLAN_OPTIONS = f"""
    --max-moves N = 100      most moves
    --consumer-type TYPE...  move only consumers of this type (default: all)
    --cold                   a move releases the old place before it claims the new one
    --explain                explain why the first unmoved consumer has no place
    {GIVEN_OPTION}
    | --nova                 print commands of the openstack client
    | --follow               print each move after the previous one is done
"""


class _PlanMoves(CloudLister):
    failure_status: ClassVar[int] = FAILED

    def build_goal(self, client: Client, options: argparse.Namespace) -> dict[str, Any]:
        raise NotImplementedError

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        declare_arguments(parser, _PLAN_OPTIONS)

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        body = {
            "goal": self.build_goal(client, options),
            "max_moves": options.max_moves,
            "both_at_once": not options.cold,
            "explain": options.explain,
            **read_assumptions(options),
        }
        if options.consumer_type:
            body["movable"] = {"consumer_types": options.consumer_type}
        plan = client.call("POST", "/treeclaim/moves", body)
        if options.follow:
            _follow(client, plan)
        rows = [(number, *_make_cells(move)) for number, move in enumerate(plan["moves"], 1)]
        notes = []
        for stuck_consumer in plan["stuck"]:
            notes.append(f"left: {stuck_consumer['consumer']} ({stuck_consumer['reason']})")
            notes += format_funnel(stuck_consumer)
        notes.append(_format_summary(plan))
        if options.nova:
            rows = []
            notes = [_format_nova_command(move, is_cold=options.cold) for move in plan["moves"]]
        elif options.follow:
            rows = []
        return Result(
            ("Step", "Consumer", "From", "To"),
            rows,
            plan,
            notes=notes,
            status=0 if plan["reached"] else 1,
        )


class DrainProviders(_PlanMoves):
    """List the moves that empty hosts. Nothing is moved.

    Exit status: 0 if they are emptied, 1 if not, 2 if the command failed.
    """

    example = "host-1 host-2"

    arguments = """
        ! HOST...  a provider, by name or uuid
        ! --leave  empty the providers that have a condition with the effect leave
    """

    def build_goal(self, client: Client, options: argparse.Namespace) -> dict[str, Any]:
        if options.leave:
            return {"leave": True}
        return {"empty": [find_provider(client, name)["uuid"] for name in options.host]}


class MakeRoom(_PlanMoves):
    """List the moves that make room for more consumers. Nothing is moved.

    Exit status: 0 if they fit, 1 if not, 2 if the command failed.
    """

    example = "resources=VCPU:8 --amount 4"

    arguments = f"""
        {QUERY_ARGUMENTS}
        --amount N = 1  number of consumers to make room for
    """

    def build_goal(self, client: Client, options: argparse.Namespace) -> dict[str, Any]:
        query = self.build_query(options)
        return {"fit": {"query": str(resolve_providers(client, query)), "amount": options.amount}}


class Defragment(_PlanMoves):
    """List the moves that make most room for a mix. Nothing is moved.

    Exit status: 0 if the goal is reached, 1 if not, 2 if the command failed.
    """

    example = "--mix weekday --max-moves 20"

    arguments = """
        ! --mix NAME   the expected requests
        --empty-trees  empty as many hosts as possible first
    """

    def build_goal(self, client: Client, options: argparse.Namespace) -> dict[str, Any]:
        del client
        return {"keep": {"mix": options.mix, "empty_trees": options.empty_trees}}


def _join_names(roots: Sequence[Mapping[str, str]]) -> str:
    return ", ".join(root["name"] for root in roots)


def _format_nova_command(move: Mapping[str, Any], *, is_cold: bool) -> str:
    kind = "" if is_cold else "--live-migration "
    host = shlex.quote(_join_names(move["to_roots"][:1]))
    return f"openstack server migrate {kind}--host {host} {move['consumer']}"


def _format_summary(plan: Mapping[str, Any]) -> str:
    least_moves = plan["at_least"]
    bound = ""
    if plan["reached"]:
        verdict = "the goal is reached"
        bound = "" if least_moves is None else f" (at least {least_moves} needed)"
    else:
        verdict = "the goal is not reached" + (", and cannot be" if plan["proven"] else "")
        verdict += (
            ""
            if least_moves is None
            else f": it takes at least {format_count(least_moves, 'move')}"
        )
    note = "" if plan["complete"] else "; there was no time to try all"
    moves = format_count(len(plan["moves"]), "move")
    return f"{moves}{bound}; {verdict}{note}; {_format_gain(plan)}"


def _format_gain(plan: Mapping[str, Any]) -> str:
    words = {"left": "consumers left", "fits": "fit", "empty_trees": "empty trees"}
    old_values, new_values = plan["before"], plan["after"]
    return ", ".join(
        f"{word}: {old_values[key]} to {new_values[key]}"
        for key, word in words.items()
        if old_values[key] is not None
    )


def _make_cells(move: Mapping[str, Any]) -> tuple[str, str, str]:
    return move["consumer"], _join_names(move["from_roots"]), _join_names(move["to_roots"])


def _follow(client: Client, plan: Mapping[str, Any]) -> None:
    # A cursor from before the first check misses no change.
    cursor = client.get("/treeclaim/changes")["cursor"]
    changes = watch(client, cursor)
    for number, move in enumerate(plan["moves"], 1):
        consumer, source, target = _make_cells(move)
        print_lines(f"{number}. {consumer}: {source} -> {target}", flush=True)
        target_amounts = amounts_by_provider(move["to"])
        while (
            amounts_by_provider(client.get(f"/allocations/{consumer}")["allocations"])
            != target_amounts
        ):
            next(changes)
