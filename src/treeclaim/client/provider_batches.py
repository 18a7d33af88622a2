# SPDX-License-Identifier: Apache-2.0
"""Writes whole trees of providers by POST /treeclaim/providers (contract page 99, section 8)."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, partial
from http import HTTPStatus
from typing import NamedTuple

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.retry import is_conflict
from treeclaim.client.session import BATCH, split_batches
from treeclaim.client.states import (
    ProviderState,
    format_changes,
    format_value,
    make_state,
    merge_part,
)
from treeclaim.model.parts import PARTS

_ATTEMPTS = 5
"""Attempts to write a tree that other clients change concurrently."""

_POSITION = re.compile(r"providers\[(\d+)\]: ")
"""Position of the entry in an error's text."""

_WHOLE_TREE = "its tree is refused as a whole"

_REFUSALS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
"""Errors in the providers of a call; other errors are of the service or of the caller's rights."""


class Action(Enum):
    """An action on a provider, with its sign in a diff."""

    CREATE = "+"
    CHANGE = "~"
    DELETE = "-"
    KEEP = " "


@dataclass(frozen=True)
class PlannedChange:
    """A planned change of a provider.

    Parts that the wanted state omits stay; its empty parts are emptied.

    Attributes:
        before: The present state; None if the provider does not exist.
        wanted_state: The wanted state; None to delete the provider.
        prune: Whether a part of the wanted state replaces the present part, instead of extending it.
        line: Line in a file; 0 without a file.
    """

    before: ProviderState | None
    wanted_state: ProviderState | None
    prune: bool = True
    line: int = 0

    @cached_property
    def after(self) -> ProviderState:
        """The state after the change; the present state for a deletion."""
        if self.wanted_state is None:
            assert self.before is not None  # noqa: S101 - a deletion has a present state
            return self.before
        present_values = {} if self.before is None else self.before.values
        values = {
            part.name: merge_part(
                part,
                part.or_empty(present_values),
                self.wanted_state.values[part.name],
                prune=self.prune,
            )
            for part in PARTS
            if part.name in self.wanted_state.values
        }
        return replace(self.wanted_state, values=values)

    @cached_property
    def action(self) -> Action:
        """The action of the change."""
        if self.wanted_state is None:
            return Action.DELETE
        if self.before is None:
            return Action.CREATE
        return Action.CHANGE if self.changed_members else Action.KEEP

    @cached_property
    def changed_members(self) -> list[str]:
        """Names of the attributes and parts that the change alters."""
        after = self.after
        before = self.before or ProviderState(after.uuid, "", None)
        attributes = ("name", "parent")
        return [
            *(name for name in attributes if getattr(before, name) != getattr(after, name)),
            *(
                part.name
                for part in PARTS
                if part.name in after.values
                and not part.is_same(part.or_empty(before.values), after.values[part.name])
            ),
        ]

    def replan(self, client: Client) -> "PlannedChange":
        """Plan the change from the provider's current state."""
        parts = [part for part in PARTS if part.name in self.after.values]
        rows = client.provider_states([part.name for part in parts], uuid=self.after.uuid)
        return replace(self, before=next((make_state(row, parts) for row in rows), None))

    @property
    def place(self) -> str:
        """Name of the provider, with its line if it is in a file."""
        return f"{self.after.name} (line {self.line})" if self.line else self.after.name

    @property
    def entry(self) -> dict[str, object]:
        """The change for POST /treeclaim/providers; its generation detects concurrent changes."""
        after = self.after
        entry: dict[str, object] = {"uuid": after.uuid}
        if not {"name", "parent"}.isdisjoint(self.changed_members):
            entry |= {"name": after.name, "parent_provider_uuid": after.parent}
        if self.before is not None:
            entry["generation"] = self.before.generation
        for part in PARTS:
            if part.name in self.changed_members:
                entry[part.name] = part.to_json(after.values[part.name])
        return entry

    def format_differences(self, names: Mapping[str, str]) -> Iterator[str]:
        """Yield texts of the differences, with `names` of providers and aggregates by uuid."""
        before, after = self.before or replace(self.after, parent=None, values={}), self.after
        old_texts, new_texts = (
            {"name": state.name}
            | ({} if state.parent is None else {"parent": names.get(state.parent, state.parent)})
            for state in (before, after)
        )
        yield from format_changes(old_texts, new_texts)
        for part in PARTS:
            if part.name in after.values:
                old_value, new_value = (part.or_empty(state.values) for state in (before, after))
                yield from format_changes(
                    format_value(part, old_value, new_value, names),
                    format_value(part, new_value, old_value, names),
                )


class TreePlace(NamedTuple):
    """The root of a provider's tree, and the number of its ancestors."""

    root: str
    depth: int


def order_trees(parents: Mapping[str, str | None]) -> dict[str, TreePlace]:
    """Return the places of providers, parents before children; omit providers in or below a cycle.

    A provider whose parent has no entry is a root. The time is linear; walking up from each provider would take a
    day for a chain of 200,000.
    """
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for name, parent in parents.items():
        children[parent if parent in parents else None].append(name)
    places = {name: TreePlace(name, 0) for name in children[None]}
    queue = list(places)
    for name in queue:
        root, depth = places[name]
        queue += children[name]
        places |= dict.fromkeys(children[name], TreePlace(root, depth + 1))
    return places


Tree = Sequence[PlannedChange]


def group_by_tree(
    changes: Sequence[PlannedChange], parents: Mapping[str, str | None]
) -> list[list[PlannedChange]]:
    """Group changes other than deletions by tree, parents before children; `parents` are final."""
    places = order_trees(parents)

    def place(change: PlannedChange) -> TreePlace:
        return places.get(change.after.uuid) or TreePlace(change.after.uuid, 0)

    trees: dict[str, list[PlannedChange]] = {place(change).root: [] for change in changes}
    for change in sorted(changes, key=lambda change: place(change).depth):
        trees[place(change).root].append(change)
    return list(trees.values())


def write_trees(
    client: Client,
    trees: Iterable[Tree],
    *,
    dry_run: bool = False,
    note: Callable[[Sequence[PlannedChange]], None] = lambda _: None,
) -> dict[str, str]:
    """Create and change the providers of trees, parents before children; call `note` with written changes.

    A tree of at most `BATCH` changes is written as a whole. A rejected tree does not stop the others. After a
    concurrent change by another client, a tree is planned again. A dry run checks the changes, except those of larger
    trees, and writes nothing.

    Returns:
        The reasons of refusals, by the uuids of all changed providers of rejected trees.
    """
    refusals: dict[str, str] = {}
    write = partial(_write, client, refusals, note, dry_run=dry_run)
    waiting_trees: list[Tree] = []
    for tree in trees:
        changes = [change for change in tree if change.action is not Action.KEEP]
        if len(changes) > BATCH:
            uuids = [change.after.uuid for change in changes]
            for part in () if dry_run else split_batches(changes):
                if refusals.keys().isdisjoint(uuids):
                    write([part])
                else:
                    refusals |= dict.fromkeys((change.after.uuid for change in part), _WHOLE_TREE)
            continue
        if sum(map(len, waiting_trees)) + len(changes) > BATCH:
            write(waiting_trees)
            waiting_trees = []
        if changes:
            waiting_trees.append(changes)
    if waiting_trees:
        write(waiting_trees)
    return refusals


def _write(
    client: Client,
    refusals: dict[str, str],
    note: Callable[[Sequence[PlannedChange]], None],
    trees: Sequence[Tree],
    *,
    dry_run: bool,
    attempts: int = _ATTEMPTS,
) -> None:
    """Write trees in one call; bisect rejected calls down to single trees."""
    changes = [change for tree in trees for change in tree]
    write = partial(_write, client, refusals, note, dry_run=dry_run)
    try:
        client.apply_providers([change.entry for change in changes], dry_run=dry_run)
    except ClientError as error:
        if error.status not in _REFUSALS:
            raise
        if len(trees) > 1:
            middle = len(trees) // 2
            write(trees[:middle])
            write(trees[middle:])
        elif attempts > 1 and all(map(is_conflict, error.errors)):
            write([[change.replan(client) for change in changes]], attempts=attempts - 1)
        else:
            refusals |= _find_reasons(error, changes)
    else:
        note(changes)


def _find_reasons(error: ClientError, changes: Tree) -> dict[str, str]:
    """Return the reason for each provider of a rejected call, from the errors at its position."""
    reasons: dict[str, str] = {}
    for text in map(str, error.errors):
        match = _POSITION.search(text)
        if match is not None:
            uuid = changes[int(match[1])].after.uuid
            reasons.setdefault(uuid, text.replace(match[0], "", 1))
    default = _WHOLE_TREE if reasons else str(error)
    return {change.after.uuid: reasons.get(change.after.uuid, default) for change in changes}
