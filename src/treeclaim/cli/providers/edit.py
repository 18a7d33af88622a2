# SPDX-License-Identifier: Apache-2.0
"""`treeclaim edit`: the parts of a provider in a text editor."""

import argparse
import math
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from treeclaim.cli.command import CloudAction
from treeclaim.cli.names import find_provider
from treeclaim.cli.output import CommandError, describe_failure, print_lines
from treeclaim.client import Client, ClientError
from treeclaim.client.loading import LoadPlan, make_plan
from treeclaim.client.provider_batches import Action, PlannedChange
from treeclaim.client.retry import is_conflict
from treeclaim.client.states import ProviderState, make_state, omit_empty_consumes
from treeclaim.client.topology.document import DocumentFault
from treeclaim.client.topology.file import Topology, TopologyError, parse_topology
from treeclaim.client.topology.planned import escape_braces
from treeclaim.model.names import one_line
from treeclaim.model.parts import ATTRIBUTES, INVENTORIES, PARTS

_EDITOR = "vi"

_MOST_EDITS = 20
"""Edits of a file that remains invalid; an editor that is a script may change it each time."""

_HEAD = """\
# Provider {name}. Its parts become those listed here; a part that you delete as a whole stays as it
# is. An empty file cancels the edit. Lines that begin with # are ignored.
"""


class EditProvider(CloudAction):
    """Edit the inventories, traits, aggregates and attributes of a provider in $VISUAL or $EDITOR.

    The editor opens again after an error, or if another client changed the provider meanwhile.
    """

    example = "host-1"

    arguments = "PROVIDER  uuid or name of the provider"

    def act(self, client: Client, options: argparse.Namespace) -> int:
        uuid = find_provider(client, options.provider)["uuid"]
        with tempfile.TemporaryDirectory(prefix="treeclaim-edit-") as folder:
            return _edit(client, uuid, Path(folder) / "provider.yaml")


def _edit(client: Client, uuid: str, file: Path) -> int:
    """Open the editor until the provider is written or the edit ends; return the exit status."""
    base = _read(client, uuid)
    first_text = text = _serialize(base)
    notes: list[str] = []
    for _ in range(_MOST_EDITS):
        edited_text = _edit_text(file, _add_notes(text, base.name, notes))
        if not edited_text.strip():
            print_lines("Cancelled: the file is empty.")
            return 1
        if edited_text == text and notes:
            raise CommandError(*notes, "nothing was changed")
        if edited_text == first_text and not notes:
            print_lines("Nothing was changed.")
            return 0
        text = edited_text
        try:
            plan = make_plan(client, _parse(text, uuid), prune=True)
        except TopologyError as error:
            added_lines = _HEAD.count("\n") + len(error.problems)
            notes = [
                f"line {problem.line + added_lines}: {problem.text}" for problem in error.problems
            ]
            continue
        if _write(client, plan, base.generation):
            return 0
        former_state, base = base, _read(client, uuid)
        foreign_change = PlannedChange(former_state, replace(base, parent=former_state.parent))
        notes = [
            "Another client changed this provider meanwhile:",
            *(f"  {field}" for field in foreign_change.format_differences({})),
            "Adopt these changes in the file, or do not; then save it to write it.",
        ]
    raise CommandError(*notes, f"nothing was changed after {_MOST_EDITS} edits")


def _write(client: Client, plan: LoadPlan, generation: int) -> bool:
    """Write the change of a plan; return False if another client changed the provider meanwhile."""
    change = plan.changes[0]
    if change.before is None or change.before.generation != generation:
        return False
    if change.action is Action.KEEP:
        print_lines("Nothing was changed.")
        return True
    try:
        client.apply_providers([change.entry])
    except ClientError as error:
        if is_conflict(error):
            return False
        raise
    print_lines(
        f"{change.after.name} changed:",
        *(f"  {field}" for field in change.format_differences(plan.names)),
    )
    return True


def _read(client: Client, uuid: str) -> ProviderState:
    for row in client.provider_states([part.name for part in PARTS], uuid=uuid):
        return make_state(row, PARTS)
    raise CommandError(f"provider {uuid} is gone")


def _parse(text: str, uuid: str) -> Topology:
    topology = parse_topology(text, "the edited file")
    if not topology.problems and [provider.uuid for provider in topology.providers] != [uuid]:
        fault = DocumentFault(1, f"the file must have one provider, with uuid {uuid}")
        return replace(topology, problems=[fault])
    return topology


def _serialize(state: ProviderState) -> str:
    inventories = INVENTORIES.or_empty(state.values)
    entry = {
        "name": escape_braces(state.name),
        "uuid": state.uuid,
        **{
            part.name: part.to_json(part.value_in(state.values))
            for part in PARTS
            if part.name in state.values
        },
        INVENTORIES.name: {
            name: omit_empty_consumes(fields) for name, fields in inventories.items()
        },
    }
    # Quoted and escaped, invisible characters survive the edit and are harmless in the editor.
    texts = [state.name, *map(str, ATTRIBUTES.or_empty(state.values).values())]
    is_plain = all(text.isprintable() for text in texts)
    return yaml.safe_dump(
        {"providers": [entry]}, sort_keys=False, allow_unicode=is_plain, width=math.inf
    )


def _add_notes(text: str, name: str, notes: Sequence[str]) -> str:
    """Return the text below comments, each on one line, so that no foreign text ends them."""
    comments = "".join(f"# ! {one_line(note)}\n" for note in notes)
    return _HEAD.format(name=one_line(name)) + comments + text


def _edit_text(file: Path, text: str) -> str:
    """Open an editor on a text; return the edited text without comments."""
    file.write_text(text, encoding="utf-8")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode  # noqa: S603
    except (OSError, ValueError) as error:
        raise CommandError(
            f"the editor {editor!r} cannot be run: {describe_failure(error)}"
        ) from error
    if code:
        raise CommandError(
            f"the editor {editor!r} ended with exit code {code}; nothing was changed"
        )
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))
