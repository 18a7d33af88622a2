# SPDX-License-Identifier: Apache-2.0
"""What a command takes for granted: a file with the member `given` (contract page 101, section 1)."""

import argparse
import json
from pathlib import Path
from typing import Any

from treeclaim.cli.output import CommandError

FAILED = 2
"""Exit code of a plan that could not be made; 1 says that it does not reach what was asked."""


def add_given_option(command: argparse.ArgumentParser) -> None:
    """Add the option."""
    command.add_argument(
        "--given",
        type=Path,
        metavar="FILE",
        help="JSON with what to take for granted: release, without, providers, place",
    )


def given_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """Read the file; None if none is named.

    Raises:
        CommandError: if it is no JSON object.
    """
    if options.given is None:
        return None
    try:
        given = json.loads(options.given.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{options.given}: {error}") from error
    if not isinstance(given, dict):
        raise CommandError(f"{options.given}: it is not an object")
    return given
