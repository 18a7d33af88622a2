# SPDX-License-Identifier: Apache-2.0
"""Queries for candidates on the command line: words, a query string, or a flavor.

A query is printed as it is typed, `resources=VCPU:2 limit=3`, so that the output of a command can be pasted
into another. Unknown names are refused with the nearest known name. A flavor of Nova becomes the query that
Nova would send.
"""

import argparse
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from treeclaim.cli.nova import Nova
from treeclaim.cli.output import CommandError, failures_at, warn
from treeclaim.client import CandidateQuery, Flavor
from treeclaim.model.flavors import parse_flavors
from treeclaim.model.names import unknown_word
from treeclaim.model.query.parameters import BY_NAME, Grammar, find_parameter
from treeclaim.model.server_flavors import ENABLED_HOSTS, translate_flavor

_SIZES = ("vcpus", "ram", "disk", "ephemeral", "swap")

_SEVERAL = re.compile(rf"[^&=]+=[^&]*&({'|'.join(map(re.escape, BY_NAME))})[A-Za-z0-9_-]*=")


QUERY_ARGUMENTS = """
    parameters:NAME=VALUE...  parameters of the query, such as resources=VCPU:2 required_GPU=CUSTOM_A100; or a query string
    | --flavor-file FILE      a flavor in YAML or JSON: vcpus, ram, disk, ephemeral, swap, extra_specs
    | --server-flavor NAME    a flavor of Nova, by name or id; the query is the one that Nova sends for it
"""

ORDER_OPTION = """
    --order-by TERMS  order of the candidates, such as spread or pack
"""


def has_query(options: argparse.Namespace) -> bool:
    """Return whether the options describe a query."""
    return any((options.parameters, options.flavor_file, options.server_flavor))


def in_words(query: str | CandidateQuery) -> str:
    """Return a query as words that a shell reads as they are."""
    pairs = CandidateQuery.of(query).parameters
    return " ".join(shlex.quote(f"{name}={value}") for name, value in pairs)


def query_of(options: argparse.Namespace, find_nova: Callable[[], Nova]) -> CandidateQuery:
    """Return the query that the options describe.

    Args:
        options: The options of the command.
        find_nova: Returns Nova of the cloud, for `--server-flavor`.
    """
    parameters = [pair for text in options.parameters for pair in _pairs(text)]
    for name, _ in parameters:
        if find_parameter(name) is None:
            hint = "; sizes belong into a file for --flavor-file" if name in _SIZES else ""
            base_name = re.split("[0-9_:]", name)[0]
            raise CommandError(unknown_word(name, BY_NAME, resembling=base_name) + hint)
    _refuse_repeated_amounts([name for name, _ in parameters])
    of_flavor: Sequence[tuple[str, str]] = ()
    if options.server_flavor is not None:
        name = options.server_flavor
        flavor = find_nova().flavor(name)
        of_flavor = translated(flavor, f"flavor {name} cannot be read").parameters
    elif options.flavor_file is not None:
        flavors = list(flavors_in(options.flavor_file).values())
        if len(flavors) != 1:
            text = f"{options.flavor_file}: there are {len(flavors)} flavors in it, not one"
            raise CommandError(text)
        of_flavor = translated(flavors[0], str(options.flavor_file)).parameters
    if not (of_flavor or parameters):
        raise CommandError("the query is empty; give parameters such as resources=VCPU:1")
    if any(name == ENABLED_HOSTS[0] for name, _ in parameters):
        # Typed parameters of the root replace those of the flavor.
        of_flavor = [pair for pair in of_flavor if pair != ENABLED_HOSTS]
    if (order := getattr(options, "order_by", None)) is not None:
        parameters.append(("order_by", order))
    return CandidateQuery((*of_flavor, *parameters))


def _refuse_repeated_amounts(names: Sequence[str]) -> None:
    """Refuse amounts that the service would ignore: the last ones replace those before them."""
    for name in names:
        parameter = find_parameter(name)
        if names.count(name) > 1 and parameter and parameter.grammar is Grammar.AMOUNTS:
            text = f"{name} is given more than once; write {name}=VCPU:2,DISK_GB:100"
            raise CommandError(text)


def _pairs(text: str) -> Sequence[tuple[str, str]]:
    """Return the parameter of a word, or those of a query string.

    A query string begins with `?`, or has another parameter after `&`.
    """
    if text.startswith("?") or _SEVERAL.match(text):
        return CandidateQuery.parsed(text).parameters
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"{text!r} is not of the form NAME=VALUE")
    return ((name, value),)


def translated(flavor: Flavor, source: str) -> CandidateQuery:
    """Return the query that Nova sends for a flavor; warn of the parts that it checks itself.

    Args:
        flavor: The flavor.
        source: The flavor's place, for messages.
    """
    with failures_at(source):
        translation = translate_flavor(flavor)
    if translation.omitted_specs:
        omitted_specs = ", ".join(translation.omitted_specs)
        warn(f"Nova checks these itself, so they are not part of the query: {omitted_specs}")
    return CandidateQuery(translation.parameters)


def flavors_in(file: Path) -> dict[str, Flavor]:
    """Return the flavors of a file by name."""
    with failures_at(file), failures_at(file, (yaml.YAMLError,)):
        return parse_flavors(yaml.safe_load(file.read_text(encoding="utf-8")))
