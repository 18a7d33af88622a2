# SPDX-License-Identifier: Apache-2.0
"""Questions for candidates as people type them: parameters, or a flavor."""

import argparse
from pathlib import Path
from typing import Any

import yaml

from treeclaim.cli.output import CommandError
from treeclaim.client import CandidateQuery, Flavor, FlavorError, query_of

_SIZES = ("vcpus", "ram", "disk")


def add_question_options(command: argparse.ArgumentParser) -> None:
    """Add the arguments that say what is wanted."""
    command.add_argument(
        "parameters",
        nargs="*",
        metavar="NAME=VALUE",
        help="parameters of the query, such as resources=VCPU:2 required_GPU=CUSTOM_A100",
    )
    command.add_argument(
        "--flavor-file",
        type=Path,
        metavar="FILE",
        help="a flavor in YAML or JSON: vcpus, ram, disk, extra_specs",
    )
    command.add_argument(
        "--flavor",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="parts of a flavor: vcpus=4 ram=8192 disk=20 resources_GPU:VGPU=1",
    )


def query_of_options(options: argparse.Namespace) -> CandidateQuery:
    """Return the query that a command's options describe."""
    given = [_pair(one) for one in options.parameters]
    flavor: dict[str, Any] = {}
    if options.flavor_file is not None:
        flavor = _read(options.flavor_file)
    specs = dict(flavor.get("extra_specs") or {})
    sizes = {name: flavor.get(name, 0) for name in _SIZES}
    for name, value in map(_pair, options.flavor):
        (sizes if name in _SIZES else specs)[name] = value
    try:
        amounts = {name: int(value) for name, value in sizes.items()}
        parameters = query_of(Flavor(**amounts, extra_specs=specs)).parameters
    except (FlavorError, ValueError) as error:
        raise CommandError(f"the flavor cannot be read: {error}") from error
    if not (parameters or given):
        raise CommandError("nothing was asked for; give parameters such as resources=VCPU:1")
    return CandidateQuery((*parameters, *given))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{file}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("extra_specs", {}), dict):
        raise CommandError(f"{file}: a flavor is a mapping of vcpus, ram, disk and extra_specs")
    return document
