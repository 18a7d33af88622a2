# SPDX-License-Identifier: Apache-2.0
"""`treeclaim fit`: how many consumers of a flavor fit, now and if nothing were allocated."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import yaml
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from treeclaim.cli.cloud.asking.question import add_question_options, query_of_options
from treeclaim.cli.cloud.endpoint import add_endpoint_options, client_of
from treeclaim.cli.cloud.providers import with_uuids
from treeclaim.cli.output import CommandError, positive, printer
from treeclaim.client import CandidateQuery, Flavor, FlavorError, query_of
from treeclaim.client.requests.placing import TREES, Capacity, Domains

_BAR = 30
_PARTS = 20
"""Parts shown of each request if nobody says how many: a screen."""

_SIZES = ("vcpus", "ram", "disk")


def add_to(commands: Any) -> None:
    """Add the command."""
    fit = commands.add_parser("fit", help="count how many consumers of a request still fit")
    add_question_options(fit)
    fit.add_argument(
        "--flavors",
        type=Path,
        metavar="FILE",
        help="several flavors in YAML or JSON: each name with vcpus, ram, disk and extra_specs",
    )
    fit.add_argument(
        "--by", metavar="DOMAINS", help="tell of each too: 'tree', or uuids of aggregates"
    )
    fit.add_argument(
        "--limit", type=positive, default=_PARTS, help=f"most of these to show ({_PARTS})"
    )
    fit.add_argument("--json", action="store_true", help="show the numbers as a document")
    add_endpoint_options(fit)
    fit.set_defaults(run=run_fit)


def run_fit(options: argparse.Namespace) -> int:
    """Count, and show a table with bars."""
    requests = _flavors(options.flavors) if options.flavors else {}
    if options.parameters or options.flavor or options.flavor_file or not requests:
        requests["request"] = query_of_options(options)
    domains: Domains | None = options.by
    if domains is not None and domains != TREES:
        domains = options.by.split(",")
    with client_of(options) as client:
        asked = {name: with_uuids(client, query) for name, query in requests.items()}
        found = client.capacity(asked, domains, options.limit)
    if options.json:
        documents = {name: dataclasses.asdict(one) for name, one in found.items()}
        print(json.dumps(documents, indent=2))
    else:
        printer().print(_shown(found))
    return 0


def _flavors(file: Path) -> dict[str, CandidateQuery]:
    """Read several flavors."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise CommandError(f"{file}: {error}") from error
    if not isinstance(document, dict) or not all(
        isinstance(one, dict) for one in document.values()
    ):
        raise CommandError(f"{file}: it is a mapping of names to flavors")
    return {str(name): _query(f"{file}: {name}", one) for name, one in document.items()}


def _query(where: str, given: dict[str, Any]) -> CandidateQuery:
    unknown = sorted(map(str, given.keys() - {*_SIZES, "extra_specs"}))
    if unknown:
        raise CommandError(f"{where}: unknown {unknown[0]!r}")
    try:
        sizes = {name: int(given.get(name, 0)) for name in _SIZES}
        return query_of(Flavor(**sizes, extra_specs=given.get("extra_specs") or {}))
    except (FlavorError, TypeError, ValueError) as error:
        raise CommandError(f"{where}: {error}") from error


def _shown(found: dict[str, Capacity]) -> RenderableType:
    table = Table(box=None)
    for title in ("request", "fits", "when empty", ""):
        table.add_column(title)
    parts: list[RenderableType] = [table]
    for name, one in found.items():
        filled = round(_BAR * one.fits / max(one.when_empty, one.fits, 1))
        fits = str(one.fits) if one.fits == one.at_most else f"{one.fits} to {one.at_most}"
        note = "" if one.is_complete else " (counting took too long)"
        bar = "█" * filled + "░" * (_BAR - filled)
        table.add_row(Text(name), fits, str(one.when_empty), Text(bar + note))
        if one.domains:
            parts.append(_domains_of(name, one))
    return Group(*parts)


def _domains_of(name: str, capacity: Capacity) -> Table:
    table = Table(title=f"{name} by part", title_justify="left", box=None, show_header=False)
    most = capacity.domains[0][1]
    for domain, count in capacity.domains:
        table.add_row(Text(domain), "█" * max(1, round(_BAR * count / most)), str(count))
    return table
