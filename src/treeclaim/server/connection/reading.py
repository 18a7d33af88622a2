# SPDX-License-Identifier: Apache-2.0
"""Reads requests from the bytes of a connection: first the head, then the body, whole.

Nothing here waits or knows deadlines. `RequestReader` keeps what has arrived and returns a request as
soon as it is complete; the connection decides how long the client may take for the rest.
"""

import io
from http import HTTPStatus

from treeclaim.server.bounds import HEAD_BYTES
from treeclaim.server.http.head import RequestHead, read_head
from treeclaim.server.http.parser import HeadParser
from treeclaim.server.http.refusals import RefusedError, too_long

_END_OF_HEAD = b"\r\n\r\n"


class RequestReader:
    """The bytes that a client has sent, as requests.

    Attributes:
        data: Bytes that have arrived and are not read yet; those of pipelined requests, too.
        has_head: Whether the head of an unfinished request has been read.
        is_unread: Whether the rest of the last request is left unread, so that nothing more can be
            read from this connection: its body is too long, or another message follows its chunks.
        wants_continue: Whether the client waits for 100 Continue before it sends the body.
    """

    def __init__(self, body_bytes: int) -> None:
        """Set the limit of a body's length.

        Args:
            body_bytes: Longest body that is read. The application refuses longer ones.
        """
        self.data = bytearray()
        self.is_unread = False
        self.wants_continue = False
        self._body_bytes = body_bytes
        self._head: RequestHead | None = None
        self._parser = HeadParser()

    @property
    def has_head(self) -> bool:
        """Whether the head of an unfinished request has been read."""
        return self._head is not None

    @property
    def held_bytes(self) -> int:
        """How much of an unfinished request is in memory."""
        return len(self.data) + len(self._parser.found.body or b"")

    def request(self) -> RequestHead | None:
        """Return the next request with its body in `wsgi.input`; None while it is incomplete.

        Raises:
            RefusedError: if it is not HTTP, or its head is too long.
        """
        if self._head is None:
            self._head = self._read_head()
        head = self._head
        if head is None or not self._read_body(head):
            return None
        self._head = None
        return head

    def _read_head(self) -> RequestHead | None:
        if self.data.startswith((b"\r", b"\n")):
            # Empty lines before a request are allowed (RFC 9112, 2.2).
            self.data = self.data.lstrip(b"\r\n")
        end = self.data.find(_END_OF_HEAD)
        if end < 0 or end > HEAD_BYTES:
            if len(self.data) > HEAD_BYTES:
                raise too_long()
            return None
        end += len(_END_OF_HEAD)
        text = bytes(self.data[:end])
        del self.data[:end]
        self._parser = HeadParser()
        self.is_unread = False
        head = read_head(text, self._parser)
        self._prepare_body(head)
        return head

    def _prepare_body(self, head: RequestHead) -> None:
        if head.is_chunked:
            if self._parser.found.is_complete:
                raise RefusedError(
                    HTTPStatus.BAD_REQUEST, "A request for an upgrade cannot be chunked."
                )
            self._parser.found.body = bytearray()
        elif head.length > self._body_bytes:
            self.is_unread = True
        self.wants_continue = head.expects_continue and not self.data

    def _read_body(self, head: RequestHead) -> bool:
        """Return whether the body is complete, or will not be read; take it out of the data."""
        if head.is_chunked:
            return self._read_chunks(head)
        if self.is_unread:
            head.environment["wsgi.input"] = io.BytesIO()
            return True
        if len(self.data) < head.length:
            return False
        body = bytes(self.data[: head.length])
        del self.data[: head.length]
        head.environment["wsgi.input"] = io.BytesIO(body)
        return True

    def _read_chunks(self, head: RequestHead) -> bool:
        data = bytes(self.data)
        self.data.clear()
        self._parser.feed(data)
        body = self._parser.found.body or bytearray()
        if len(body) > self._body_bytes:
            self.is_unread = True
            body = body[: self._body_bytes + 1]
        elif not self._parser.found.is_complete:
            return False
        if self._parser.found.messages > 1:
            # llhttp does not say at which byte the next request begins.
            self.is_unread = True
        self._parser.found.body = None
        head.environment["CONTENT_LENGTH"] = str(len(body))
        head.environment["wsgi.input"] = io.BytesIO(bytes(body))
        return True
