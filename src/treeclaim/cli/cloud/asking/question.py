# SPDX-License-Identifier: Apache-2.0
"""Questions for candidates as people type them: parameters, or a flavor.

Nothing that is typed is dropped: what has no meaning is refused, with what might have been meant.
"""

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from keystoneauth1.adapter import Adapter

from treeclaim.cli.cloud.asking.server_flavor import query_of_server_flavor
from treeclaim.cli.cloud.compute import compute_of
from treeclaim.cli.output import CommandError, reason_of
from treeclaim.client import CandidateQuery, Flavor, FlavorError, query_of
from treeclaim.client.spelling import unknown_word
from treeclaim.model.query_parameters import BY_NAME, QUERY_PARAMETERS, parameter_named

_SIZES = ("vcpus", "ram", "disk")
_SPECS = ("extra_specs", "properties")
"""Members with extra specs, as Nova's API and as OpenStack's client call them."""

_OTHERS = (
    "id",
    "name",
    "description",
    "swap",
    "ephemeral",
    "rxtx_factor",
    "links",
    "is_public",
    "is_disabled",
    "access_project_ids",
    "location",
    "original_name",
    "created_at",
    "updated_at",
    "OS-FLV-DISABLED:disabled",
    "OS-FLV-EXT-DATA:ephemeral",
    "os-flavor-access:is_public",
)
"""Members that flavors have besides, and that say nothing to Placement."""

_KINDS = tuple(each.flavor_items for each in QUERY_PARAMETERS if each.flavor_items)
_OWN_SPEC = re.compile(rf"({'|'.join(_KINDS)})([0-9_][^:]*)?:.*", re.DOTALL)
_SIMILAR = 0.8
"""Least similarity of a word to a known one, from 0 to 1, to suggest that; `hw` is not `trait`."""


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
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="parts of a flavor: vcpus=4 ram=8192 disk=20 resources_GPU:VGPU=1",
    )
    command.add_argument(
        "--server-flavor",
        metavar="NAME",
        help="a flavor that Nova knows, by name or id: what Nova asks for a server of it",
    )


def is_asked(options: argparse.Namespace) -> bool:
    """Tell whether a command's options have a question at all."""
    given = (options.parameters, options.flavor, options.flavor_file, options.server_flavor)
    return any(given)


def query_of_options(
    options: argparse.Namespace, compute: Callable[[], Adapter] | None = None
) -> CandidateQuery:
    """Return the query that a command's options describe.

    Args:
        options: Of the command.
        compute: Gives what talks to the compute API; None for that of the options' cloud.

    Raises:
        CommandError: for what cannot be read, or has no meaning.
    """
    given = [_parameter(*_pair(text)) for text in options.parameters]
    given += _of_server_flavor(options, compute)
    sizes: dict[str, Any] = {}
    specs: dict[str, Any] = {}
    if options.flavor_file is not None:
        sizes, specs = _read(options.flavor_file)
    seen: set[str] = set()
    for name, value in map(_pair, options.flavor):
        if name in seen:
            raise CommandError(f"--flavor: {name!r} is given twice")
        seen.add(name)
        if name in _SIZES:
            sizes[name] = value
        elif _OWN_SPEC.fullmatch(name):
            specs[name] = value
        elif parameter_named(name) is not None:
            # Typed after --flavor, and meant for the question.
            given.append((name, value))
        else:
            raise CommandError(f"--flavor: {_unknown(name, (*_SIZES, *_KINDS, *BY_NAME))}")
    try:
        amounts = {name: _amount(name, value) for name, value in sizes.items()}
        parameters = query_of(Flavor(**amounts, extra_specs=specs)).parameters
    except FlavorError as error:
        raise CommandError(f"the flavor cannot be read: {error}") from error
    if not (parameters or given):
        raise CommandError("nothing was asked for; give parameters such as resources=VCPU:1")
    return CandidateQuery((*parameters, *given))


def _of_server_flavor(
    options: argparse.Namespace, compute: Callable[[], Adapter] | None
) -> Sequence[tuple[str, str]]:
    """Return the parameters of the flavor that Nova knows, none without one."""
    name = options.server_flavor
    if name is None:
        return ()
    if options.flavor or options.flavor_file is not None:
        raise CommandError("--server-flavor is a flavor already; the other one is too much")
    source = compute() if compute is not None else compute_of(options, "--server-flavor")
    return query_of_server_flavor(source, name).parameters


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _parameter(name: str, value: str) -> tuple[str, str]:
    if parameter_named(name) is None:
        hint = "; sizes of a flavor come after --flavor" if name in _SIZES else ""
        raise CommandError(f"{_unknown(name, BY_NAME)}{hint}")
    return name, value


def _unknown(name: str, known: Iterable[str]) -> str:
    return unknown_word(name, known, resembling=re.split("[0-9_:]", name)[0])


def _amount(name: str, value: Any) -> int:
    text = str(value)
    if not re.fullmatch("[0-9]{1,10}", text):
        raise FlavorError(f"{name}: {text[:40]!r} is not an amount")
    return int(text)


def _read(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sizes and the extra specs of a file."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise CommandError(f"{file}: {reason_of(error)}") from error
    if not isinstance(document, dict):
        raise CommandError(f"{file}: a flavor is a mapping of vcpus, ram, disk and extra_specs")
    specs: dict[str, Any] = {}
    for name, value in document.items():
        if name in _SPECS:
            if not isinstance(value, dict | None):
                raise CommandError(f"{file}: {name} is a mapping")
            specs |= {str(key): spec for key, spec in (value or {}).items()}
        elif name not in (*_SIZES, *_OTHERS):
            raise CommandError(f"{file}: {_unknown(str(name), (*_SIZES, *_SPECS))}")
    for name in specs:
        _check_spec(file, name)
    return {name: document[name] for name in _SIZES if name in document}, specs


def _check_spec(file: Path, name: str) -> None:
    """Refuse an extra spec that is a misspelt one of ours; those of others are left alone."""
    if _OWN_SPEC.fullmatch(name) or parameter_named(name) is not None:
        return
    begin, colon, _ = name.partition(":")
    known = _KINDS if colon else BY_NAME
    if difflib.get_close_matches(re.split("[0-9_]", begin)[0], known, 1, _SIMILAR):
        raise CommandError(f"{file}: extra spec {_unknown(name, (*_KINDS, *BY_NAME))}")
