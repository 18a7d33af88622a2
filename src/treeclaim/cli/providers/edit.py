# SPDX-License-Identifier: Apache-2.0
"""`treeclaim edit`: what a provider has, in an editor."""

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
from treeclaim.cli.output import CommandError, reason_of, say
from treeclaim.client import Client, ClientError
from treeclaim.client.loading import make_plan
from treeclaim.client.provider_batches import Action, PlannedChange
from treeclaim.client.retry import is_conflict
from treeclaim.client.states import State, shown_fields, state_of
from treeclaim.client.topology import (
    DocumentFault,
    Topology,
    TopologyError,
    as_written,
    parse_topology,
)
from treeclaim.model.names import one_line
from treeclaim.model.parts import ATTRIBUTES, INVENTORIES, PARTS

_EDITOR = "vi"

_MOST_EDITS = 20
"""Edits of a file that remains wrong: an editor that is a program may change it each time."""

_HEAD = """\
# Provider {name}. What is listed here is what it will have; a member that you delete as a whole
# stays as it is. An empty file cancels the edit. Lines that begin with # are ignored.
"""


class EditProvider(CloudAction):
    """Edit the inventories, traits, aggregates and attributes of a provider in $VISUAL or $EDITOR.

    The editor opens again if something is wrong, or if somebody else changed the provider meanwhile.
    """

    example = "host-1"

    arguments = "PROVIDER  uuid or name of the provider"

    def act(self, client: Client, options: argparse.Namespace) -> int:
        session = _Session(client, find_provider(client, options.provider)["uuid"])
        with tempfile.TemporaryDirectory(prefix="treeclaim-edit-") as folder:
            return session.run(Path(folder) / "provider.yaml")


class _Session:
    """An edit of a provider."""

    def __init__(self, client: Client, uuid: str) -> None:
        self._client = client
        self._uuid = uuid
        self._base = self._read()

    def run(self, file: Path) -> int:
        first = text = _text_of(self._base)
        notes: list[str] = []
        for _ in range(_MOST_EDITS):
            shown = _with_notes(text, self._base.name, notes)
            edited = _edit_text(file, shown)
            if not edited.strip():
                say("Cancelled: the file is empty.")
                return 1
            if edited == (text if notes else first):
                if notes:
                    raise CommandError(*notes, "nothing was changed")
                say("Nothing was changed.")
                return 0
            text = edited
            try:
                done = self._write(edited)
            except TopologyError as error:
                above = _HEAD.count("\n") + len(error.problems)
                notes = [
                    f"line {problem.line + above}: {problem.text}" for problem in error.problems
                ]
            except _ChangedMeanwhileError:
                notes = self._take_present_state()
            else:
                say(*done)
                return 0
        raise CommandError(*notes, f"nothing was changed after {_MOST_EDITS} edits")

    def _read(self) -> State:
        include = [part.name for part in PARTS]
        rows = self._client.provider_states(include, uuid=self._uuid)
        for row in rows:
            return state_of(row, PARTS)
        raise CommandError(f"provider {self._uuid} is gone")

    def _write(self, text: str) -> list[str]:
        topology = parse_topology(text, "the edited file")
        self._require_this_provider(topology)
        plan = make_plan(self._client, topology, prune=True)
        change = plan.changes[0]
        if change.before is None or change.before.generation != self._base.generation:
            raise _ChangedMeanwhileError
        if change.action is Action.KEEP:
            return ["Nothing was changed."]
        try:
            self._client.apply_providers([change.entry])
        except ClientError as error:
            if is_conflict(error):
                raise _ChangedMeanwhileError from error
            raise
        return [
            f"{change.after.name} changed:",
            *(f"  {field}" for field in change.fields(plan.names)),
        ]

    def _require_this_provider(self, topology: Topology) -> None:
        uuids = [provider.uuid for provider in topology.providers]
        if uuids != [self._uuid] and not topology.problems:
            text = f"the file must have one provider, with uuid {self._uuid}"
            raise TopologyError(topology.source, [DocumentFault(1, text)])

    def _take_present_state(self) -> list[str]:
        """Take the present state as the base; return what others have changed, in words."""
        before, self._base = self._base, self._read()
        change = PlannedChange(before, replace(self._base, parent=before.parent))
        return [
            "Somebody else changed this provider meanwhile:",
            *(f"  {field}" for field in change.fields({})),
            "Change the file to keep that or not, and save it; it is written as it is then.",
        ]


class _ChangedMeanwhileError(Exception):
    """Somebody else changed the provider."""


def _text_of(state: State) -> str:
    inventories = INVENTORIES.or_empty(state.values)
    entry = {
        "name": as_written(state.name),
        "uuid": state.uuid,
        **{
            part.name: part.written(part.value_in(state.values))
            for part in PARTS
            if part.name in state.values
        },
        INVENTORIES.name: {name: shown_fields(fields) for name, fields in inventories.items()},
    }
    # In quotes and escaped, invisible characters survive the edit, and do nothing in the editor.
    texts = [state.name, *map(str, ATTRIBUTES.or_empty(state.values).values())]
    is_plain = all(text.isprintable() for text in texts)
    return yaml.safe_dump(
        {"providers": [entry]}, sort_keys=False, allow_unicode=is_plain, width=math.inf
    )


def _with_notes(text: str, name: str, notes: Sequence[str]) -> str:
    """Return the text to edit, below comments, which no name or foreign text can end."""
    comments = "".join(f"# ! {one_line(note)}\n" for note in notes)
    return _HEAD.format(name=one_line(name)) + comments + text


def _edit_text(file: Path, text: str) -> str:
    """Open an editor on a text; return the edited text without comments."""
    file.write_text(text, encoding="utf-8")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode  # noqa: S603
    except (OSError, ValueError) as error:
        raise CommandError(f"the editor {editor!r} cannot be run: {reason_of(error)}") from error
    if code:
        raise CommandError(
            f"the editor {editor!r} ended with exit code {code}; nothing was changed"
        )
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))
