# SPDX-License-Identifier: Apache-2.0
"""News as clients read them: JSON documents and server-sent events (contract page 99, section 4)."""

from functools import lru_cache
from typing import Any

import orjson

from treeclaim.model.extension import cursor_text
from treeclaim.model.extension.news import News, Part, ProviderChange


def document(news: News) -> bytes:
    """Write news as JSON."""
    return _document(news, cursor_text.written(news.cursor))


def nothing_since(cursor: str) -> bytes:
    """Write the answer without news since a cursor."""
    return orjson.dumps({"changes": [], "catalogue": False, "cursor": cursor})


def event(news: News) -> bytes:
    """Write news as a server-sent event."""
    cursor = cursor_text.written(news.cursor)
    text = _document(news, cursor)
    return b"id: %b\nevent: changes\ndata: %b\n\n" % (cursor.encode("ascii"), text)


def comment(news: News | None) -> bytes:
    """Write a comment that keeps the connection alive.

    Args:
        news: What was passed over since the last event, which nobody needs to be told; the cursor
            behind it is sent, so that a stream that has little to tell does not fall behind.
    """
    if news is None:
        return b":\n\n"
    return b":\nid: %b\n\n" % cursor_text.written(news.cursor).encode("ascii")


def _document(news: News, cursor: str) -> bytes:
    changes = [_change(uuid, change) for uuid, change in news.changes.items()]
    return orjson.dumps({"changes": changes, "catalogue": news.catalogue, "cursor": cursor})


def _change(uuid: str, change: ProviderChange) -> dict[str, Any]:
    if change.generation is None:
        return {"uuid": uuid, "deleted": True}
    return {"uuid": uuid, "generation": change.generation, "what": _names(int(change.parts))}


@lru_cache(maxsize=64)
def _names(parts: int) -> list[str]:
    """Return the names of parts; there are 32 sets of them."""
    return [str(part.name).lower() for part in Part if part & parts]
