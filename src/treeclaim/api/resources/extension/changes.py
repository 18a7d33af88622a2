# SPDX-License-Identifier: Apache-2.0
"""Changes of the inventory: GET /treeclaim/changes (contract page 99, section 4)."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from time import monotonic
from typing import Annotated

from pydantic import Field

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.negotiation import EVENT_STREAM, JSON, select_media_type
from treeclaim.api.protocol.operations import Answer, Call, Reply, operation
from treeclaim.api.protocol.request.bodies import Body
from treeclaim.api.protocol.request.query_models import READ_INTEGER, Uuids
from treeclaim.api.protocol.request.schemas import Shape
from treeclaim.model.changes import (
    LONGEST_CURSOR,
    Cursor,
    News,
    UnreadableCursorError,
    read_cursor,
)
from treeclaim.model.errors import OverloadedError
from treeclaim.model.names import quote_value
from treeclaim.model.parts import Part
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.news import load_news, load_roots, select_news
from treeclaim.store.feed.shards import load_cursor
from treeclaim.watching import EventStream, LongPoll, Message, Watch

MOST_TREES = 2_000
"""Most UUIDs of `in_tree`: more than fit into the head of a request."""


class ChangesQuery(Body):
    """The query of a list of changes; `wait` is in seconds."""

    since: Annotated[str, Field(max_length=LONGEST_CURSOR)] | None = None
    in_tree: Annotated[Uuids, Field(max_length=MOST_TREES)] = ()
    wait: Annotated[int, Field(ge=0, le=60), READ_INTEGER] = 0


CHANGE: Shape = {
    "uuid": str,
    "generation?": int,
    "what?": [tuple(part.word for part in Part)],
    "deleted?": bool,
}
"""A changed provider has `generation` and `what`; a deleted provider has `deleted`."""


ADOPT_KEY = "treeclaim.adopt"
"""Key of a function in the WSGI environment of a server with watchers. It adopts a `Watch`, or returns False if the server
has too many. The server sends the application's response, and then the events of the watch."""

CURSOR_EXPIRED = "treeclaim.cursor_expired"

_WATCHES = "watch service"


@operation(
    "GET /treeclaim/changes",
    policy="placement:resource_providers:list",
    shows={"changes": [CHANGE], "catalogue": bool, "cursor": str},
    errors=frozenset({HTTPStatus.GONE}),
    offers=(JSON, EVENT_STREAM),
)
def list_changes(call: Call, query: ChangesQuery) -> Answer:
    """List the changes since a cursor, or watch for changes."""
    adopt = call.request.env.get(ADOPT_KEY)
    is_stream = _wants_stream(call, can_stream=adopt is not None)
    since_text = query.since
    if is_stream:
        since_text = call.request.get_header("Last-Event-ID") or since_text
    since = None if since_text is None else _parse_cursor(since_text)
    with ExitStack() as unless_adopted:
        # The watch begins before the read, so that a commit in between is reported twice instead of never.
        watch: Watch | None = None
        if is_stream:
            end = monotonic() + call.services.options.watch_seconds
            watch = EventStream(call.services.hub, end)
        elif adopt is not None and query.wait and since_text is not None:
            watch = LongPoll(call.services.hub, monotonic() + query.wait, since_text)
        if watch is not None:
            unless_adopted.callback(watch.close)
        news, roots = call.services.store.read(_read_news, since, query.in_tree)
        if news is None:
            raise ApiError(
                HTTPStatus.GONE,
                "The changes since the cursor are no longer stored. List the providers again, and "
                "watch from the cursor of the list.",
                CURSOR_EXPIRED,
            )
        if watch is None or adopt is None or not (is_stream or news.is_empty):
            return [Message.of(news).document]
        if roots is not None:
            watch.narrow(roots)
        if not adopt(watch):
            raise OverloadedError(_WATCHES)
        unless_adopted.pop_all()
    opening = b""
    if is_stream:
        # A stream begins with the news or with the first cursor; otherwise with a comment.
        opening = b":\n\n" if news.is_empty and since is not None else Message.of(news).event
    return Reply(body=iter([opening]), content_type=EVENT_STREAM if is_stream else JSON)


def _wants_stream(call: Call, *, can_stream: bool) -> bool:
    offers = (JSON, EVENT_STREAM) if can_stream else (JSON,)
    accepted_type = select_media_type(call.request.get_header("Accept"), offers)
    if accepted_type is None:
        raise ApiError(HTTPStatus.NOT_ACCEPTABLE, "Only application/json is provided")
    return accepted_type == EVENT_STREAM


def _parse_cursor(text: str) -> Cursor:
    try:
        return read_cursor(text)
    except UnreadableCursorError as error:
        raise bad_request(
            f"Invalid cursor: {quote_value(text)} was not issued by this service."
        ) from error


def _read_news(
    transaction: ReadTransaction, since: Cursor | None, trees: Sequence[str]
) -> tuple[News | None, Mapping[str, str | None] | None]:
    """Return the changes since a cursor, and the root of each UUID in `trees`.

    The changes are None if the cursor is too old; the roots are None without `trees`.
    """
    if since is None:
        news: News | None = News(load_cursor(transaction), {}, catalogue=False)
    else:
        news = load_news(transaction, since)
    if news is None or not trees:
        return news, None
    roots = load_roots(transaction, trees)
    return select_news(transaction, news, roots), roots
