# SPDX-License-Identifier: Apache-2.0
"""Providers of a store, and those who watch them without a server."""

import json
import math
from uuid import uuid4

from tests.api.resources.extension.clouds import uuid_of
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.cursor_text import write_cursor
from treeclaim.store.feed.news import load_roots
from treeclaim.store.feed.shards import load_cursor
from treeclaim.store.operations.providers import providers
from treeclaim.watching import EventStream, LongPoll

OFTEN = 0.01
"""Seconds between two looks of a hub."""


def add(store, name, parent=None):
    """Make a provider; return its uuid."""
    parent_uuid = None if parent is None else uuid_of(parent)
    store.write(providers.create, uuid=uuid_of(name), name=name, parent_uuid=parent_uuid)
    return uuid_of(name)


def move(store, name, parent):
    """Give a provider another parent."""
    new = None if parent is None else uuid_of(parent)
    store.write(providers.update, uuid_of(name), name=name, parent=new)


def rename(store, name):
    """Change a provider that stays where it is, by one write."""
    store.write(providers.update, uuid_of(name), name=f"{name} {uuid4()}")


def delete(store, name):
    store.write(providers.delete, uuid_of(name))


def tried(write, *arguments):
    """Make a write that may be refused."""
    try:
        write(*arguments)
    except TreeclaimError:
        return


def look(hub):
    """Have a hub tell all that has been committed, as whoever joins does."""
    LongPoll(hub, math.inf, "").close()


def narrowed(watch, store, names):
    """Have a watch hear of the trees of some providers alone."""
    watch.narrow(store.read(load_roots, [uuid_of(name) for name in names]))
    return watch


def stream(hub, store, names=None):
    """Begin to hear of some trees, or of all."""
    watch = EventStream(hub, math.inf)
    return watch if names is None else narrowed(watch, store, names)


def told(watch):
    """Return the new changes of a stream by UUID; None if there are none."""
    piece = watch.take()
    if piece is None or piece.startswith(b":"):
        return None
    data = next(line for line in piece.split(b"\n") if line.startswith(b"data: "))
    changes = json.loads(data.removeprefix(b"data: "))["changes"]
    return {change["uuid"]: change.get("what", "deleted") for change in changes}


def present(store):
    """The present cursor, as text."""
    cursor = store.read(load_cursor)
    assert isinstance(cursor, Cursor)
    return write_cursor(cursor)
