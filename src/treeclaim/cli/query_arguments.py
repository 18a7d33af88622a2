# SPDX-License-Identifier: Apache-2.0
"""Queries for candidates on the command line: words, a query string, or a flavor.

A query is printed as it is typed, `resources=VCPU:2 limit=3`, so that the output of a command can be pasted
into another. Unknown names are refused with the nearest known name. A flavor of Nova becomes the query that
Nova would send.
"""

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from keystoneauth1.adapter import Adapter

from treeclaim.cli.compute import document, list_pages
from treeclaim.cli.output import CommandError, failures_at, warn
from treeclaim.client import CandidateQuery, Flavor
from treeclaim.model.flavors import amount_of, flavor_of, flavors_of, named
from treeclaim.model.names import unknown_word
from treeclaim.model.query.parameters import BY_NAME, QUERY_PARAMETERS, parameter_named
from treeclaim.model.server_flavors import (
    ENABLED_HOSTS,
    TRANSLATED,
    server_flavor,
)

_ROOT = ENABLED_HOSTS[0]

_SIZES = ("vcpus", "ram", "disk", "ephemeral", "swap")

_KINDS = tuple(each.flavor_items for each in QUERY_PARAMETERS if each.flavor_items)

_OWN_SPEC = re.compile(rf"({'|'.join(_KINDS)})([0-9_][^:]*)?:.*", re.DOTALL)

_SEVERAL = re.compile(rf"[^&=]+=[^&]*&({'|'.join(map(re.escape, BY_NAME))})[A-Za-z0-9_-]*=")


QUERY_ARGUMENTS = """
    parameters:NAME=VALUE...  parameters of the query, such as resources=VCPU:2 required_GPU=CUSTOM_A100; or a query string
    --flavor-file FILE        a flavor in YAML or JSON: vcpus, ram, disk, ephemeral, swap, extra_specs
    --flavor NAME=VALUE+      parts of a flavor: vcpus=4 ram=8192 disk=20 resources_GPU:VGPU=1
    --server-flavor NAME      a flavor of Nova, by name or id; the query is the one that Nova sends for it
"""

ORDER_OPTION = """
    --order-by TERMS  order of the candidates, such as spread or pack
"""


def has_query(options: argparse.Namespace) -> bool:
    """Return whether the options describe a query."""
    return any((options.parameters, options.flavor, options.flavor_file, options.server_flavor))


def in_words(query: str | CandidateQuery) -> str:
    """Return a query as words that a shell reads as they are."""
    pairs = CandidateQuery.of(query).parameters
    return " ".join(shlex.quote(f"{name}={value}") for name, value in pairs)


def query_of(options: argparse.Namespace, compute: Callable[[], Adapter]) -> CandidateQuery:
    """Return the query that the options describe.

    Args:
        options: The options of the command.
        compute: Makes the adapter of the compute API, for `--server-flavor`.
    """
    parameters = [_parameter(*pair) for text in options.parameters for pair in _pairs(text)]
    if options.server_flavor is not None:
        if options.flavor or options.flavor_file is not None:
            raise CommandError("--server-flavor cannot be combined with another flavor")
        parameters += _query_of_server_flavor(compute(), options.server_flavor).parameters
    flavor, typed = _flavor_of(options)
    parameters += typed
    flavor_parameters: Sequence[tuple[str, str]] = ()
    if flavor != Flavor():
        source = str(options.flavor_file or "the flavor cannot be read")
        flavor_parameters = translated(flavor, source).parameters
    if not (flavor_parameters or parameters):
        raise CommandError("the query is empty; give parameters such as resources=VCPU:1")
    if any(pair[0] == _ROOT for pair in parameters if pair != ENABLED_HOSTS):
        # Parameters of the root that are typed replace those of the flavor.
        flavor_parameters = [pair for pair in flavor_parameters if pair != ENABLED_HOSTS]
        parameters = [pair for pair in parameters if pair != ENABLED_HOSTS]
    if (order := getattr(options, "order_by", None)) is not None:
        parameters.append(("order_by", order))
    return CandidateQuery((*flavor_parameters, *parameters))


def _flavor_of(options: argparse.Namespace) -> tuple[Flavor, list[tuple[str, str]]]:
    """Return the flavor of `--flavor-file` and `--flavor`, and parameters that follow `--flavor`."""
    flavor = Flavor()
    if options.flavor_file is not None:
        flavors = flavors_in(options.flavor_file)
        if len(flavors) != 1:
            raise CommandError(
                f"{options.flavor_file}: there are {len(flavors)} flavors in it, not one"
            )
        (flavor,) = flavors.values()
    sizes: dict[str, int] = {}
    specs = dict(flavor.extra_specs)
    parameters: list[tuple[str, str]] = []
    names: set[str] = set()
    for name, value in (pair for text in options.flavor for pair in _pairs(text)):
        if name in names:
            raise CommandError(f"--flavor: {name!r} is given twice")
        names.add(name)
        if name in _SIZES:
            sizes[name] = _amount(name, value)
        elif _OWN_SPEC.fullmatch(name) or name in TRANSLATED or named(name) != name:
            specs[name] = value
        elif parameter_named(name) is not None:
            parameters.append((name, value))
        else:
            raise CommandError(
                f"--flavor: {_unknown(name, (*_SIZES, *_KINDS, *BY_NAME, *TRANSLATED))}"
            )
    return replace(flavor, **sizes, extra_specs=specs), parameters


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


def _parameter(name: str, value: str) -> tuple[str, str]:
    if parameter_named(name) is None:
        hint = "; sizes of a flavor come after --flavor" if name in _SIZES else ""
        raise CommandError(f"{_unknown(name, BY_NAME)}{hint}")
    return name, value


def _unknown(name: str, known_names: Iterable[str]) -> str:
    return unknown_word(name, known_names, resembling=re.split("[0-9_:]", name)[0])


def _amount(name: str, value: str) -> int:
    if not value:
        raise CommandError(f"--flavor: {name!r} has no amount")
    with failures_at("--flavor"):
        return amount_of(name, value)


def translated(flavor: Flavor, source: str) -> CandidateQuery:
    """Return the query that Nova sends for a flavor; warn of the parts that it checks itself.

    Args:
        flavor: The flavor.
        source: The flavor's place, for messages.
    """
    with failures_at(source):
        translation = server_flavor(flavor)
    if translation.unasked:
        unasked = ", ".join(translation.unasked)
        warn(f"Nova checks these itself, so they are not part of the query: {unasked}")
    return CandidateQuery(translation.parameters)


def flavors_in(file: Path) -> dict[str, Flavor]:
    """Return the flavors of a file by name."""
    with failures_at(file), failures_at(file, (yaml.YAMLError,)):
        return flavors_of(yaml.safe_load(file.read_text(encoding="utf-8")))


def _query_of_server_flavor(compute: Adapter, name: str) -> CandidateQuery:
    row = _flavor(compute, name)
    specs = document(compute, f"/flavors/{row['id']}/os-extra_specs", "extra_specs")
    source = f"flavor {name} cannot be read"
    with failures_at(source):
        flavor = replace(flavor_of(row, is_typed=False), extra_specs=specs["extra_specs"])
    return translated(flavor, source)


def _flavor(compute: Adapter, name: str) -> dict[str, Any]:
    """Return the flavor with a name or an id, public or not; an id comes first."""
    named = None
    for flavor in list_pages(compute, "/flavors/detail", "flavors", {"is_public": "None"}):
        if flavor["id"] == name:
            return flavor
        if flavor["name"] == name:
            named = flavor
    if named is None:
        raise CommandError(f"Nova has no flavor {name!r}")
    return named
