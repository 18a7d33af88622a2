# SPDX-License-Identifier: Apache-2.0
"""Queries for candidates on the command line: words, a query string, or a flavor.

Commands print queries in the form of their input, `resources=VCPU:2 limit=3`, for pasting. A flavor becomes the
query that Nova sends for it.
"""

import argparse
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from treeclaim.cli.nova import Nova
from treeclaim.cli.output import CommandError, convert_failures, warn
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


def format_query(query: str | CandidateQuery) -> str:
    """Return a query as quoted words of a shell."""
    pairs = CandidateQuery.of(query).parameters
    return " ".join(shlex.quote(f"{name}={value}") for name, value in pairs)


def build_query(options: argparse.Namespace, find_nova: Callable[[], Nova]) -> CandidateQuery:
    """Return the query of the options; `find_nova` returns the compute API for `--server-flavor`."""
    parameters = [pair for text in options.parameters for pair in _parse_parameters(text)]
    for name, _ in parameters:
        if find_parameter(name) is None:
            hint = "; sizes belong into a file for --flavor-file" if name in _SIZES else ""
            base_name = re.split("[0-9_:]", name)[0]
            raise CommandError(unknown_word(name, BY_NAME, resembling_part=base_name) + hint)
    _refuse_repeated_amounts([name for name, _ in parameters])
    flavor_parameters: Sequence[tuple[str, str]] = ()
    if options.server_flavor is not None:
        name = options.server_flavor
        query = build_flavor_query(find_nova().find_flavor(name), f"flavor {name} cannot be read")
        flavor_parameters = query.parameters
    elif options.flavor_file is not None:
        flavors = list(read_flavors(options.flavor_file).values())
        if len(flavors) != 1:
            text = f"{options.flavor_file}: there are {len(flavors)} flavors in it, not one"
            raise CommandError(text)
        flavor_parameters = build_flavor_query(flavors[0], str(options.flavor_file)).parameters
    if not (flavor_parameters or parameters):
        raise CommandError("the query is empty; give parameters such as resources=VCPU:1")
    if any(name == ENABLED_HOSTS[0] for name, _ in parameters):
        # A typed requirement on the root replaces the flavor's.
        flavor_parameters = [pair for pair in flavor_parameters if pair != ENABLED_HOSTS]
    if (order := getattr(options, "order_by", None)) is not None:
        parameters.append(("order_by", order))
    return CandidateQuery((*flavor_parameters, *parameters))


def _refuse_repeated_amounts(names: Sequence[str]) -> None:
    """Reject repeated amounts, of which the service would use only the last."""
    for name in names:
        parameter = find_parameter(name)
        if names.count(name) > 1 and parameter and parameter.grammar is Grammar.AMOUNTS:
            text = f"{name} is given more than once; write {name}=VCPU:2,DISK_GB:100"
            raise CommandError(text)


def _parse_parameters(text: str) -> Sequence[tuple[str, str]]:
    """Parse a word, or a query string, which begins with `?` or has a parameter after `&`."""
    if text.startswith("?") or _SEVERAL.match(text):
        return CandidateQuery.parsed(text).parameters
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"{text!r} is not of the form NAME=VALUE")
    return ((name, value),)


def build_flavor_query(flavor: Flavor, source: str) -> CandidateQuery:
    """Return the query that Nova sends for a flavor at a place; warn of extra specs outside the query."""
    with convert_failures(source):
        translation = translate_flavor(flavor)
    if translation.omitted_specs:
        omitted_specs = ", ".join(translation.omitted_specs)
        warn(f"Nova checks these itself, so they are not part of the query: {omitted_specs}")
    return CandidateQuery(translation.parameters)


def read_flavors(file: Path) -> dict[str, Flavor]:
    """Read the flavors of a YAML or JSON file; return them by name."""
    with convert_failures(file), convert_failures(file, (yaml.YAMLError,)):
        return parse_flavors(yaml.safe_load(file.read_text(encoding="utf-8")))
