# SPDX-License-Identifier: Apache-2.0
"""The bytes that connections hold are counted for any input at any split."""

import builtins
import contextlib
import gc
import sys
import threading
from contextlib import ExitStack
from types import CodeType, FunctionType, ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.budgets import traced_memory
from tests.server.fronts import HELLO, receive, request_of, running
from tests.servers import eventually
from treeclaim.api.protocol.errors import ApiError
from treeclaim.server.bounds import (
    HEAD_BYTES,
    HEADER_COST,
    MOST_HEADERS,
    REQUEST_COST,
    SCANNED_BYTES,
    SMALL_BYTES,
)
from treeclaim.server.http import reader as reader_module
from treeclaim.server.http.reader import RequestReader
from treeclaim.server.http.table import Phase

MEGABYTE = 1024 * 1024
BODY_BYTES = 300_000
MOST_OF_A_READER = (
    HEAD_BYTES + HEADER_COST * MOST_HEADERS + REQUEST_COST + BODY_BYTES + SCANNED_BYTES
)
"""The documented bounds of a head, a body, and the bytes after them in one turn."""

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

sizes = st.sampled_from([0, 1, 7, 500, 9_000, 70_000, 299_999, 300_001])
headers = st.builds(
    lambda number, size: b"".join(b"X%d: %b\r\n" % (at, b"y" * size) for at in range(number)),
    st.sampled_from([0, 1, 30, 198, 250]),
    st.sampled_from([0, 20, 1_900, 20_000]),
)
lengths = st.builds(
    lambda further_headers, size: (
        b"%b%bContent-Length: %d\r\n\r\n%b" % (HEAD, further_headers, size, b"b" * size)
    ),
    headers,
    sizes,
)
chunks = st.builds(
    lambda count, size, end: (
        CHUNKED + b"%x;e=1\r\n%b\r\n" % (size, b"c" * size) * count + b"0\r\n" + end
    ),
    st.sampled_from([1, 3, 300]),
    st.sampled_from([1, 2, 1_000, 60_000]),
    st.sampled_from([b"\r\n", b"Trailer: x\r\n\r\n", b"T: " + b"t" * 20_000]),
)
OTHERS = (
    HELLO * 400,
    b"\r\n" * 9_000,
    b"GET / HTTP/1.1\r\nX: " + b"x" * 500_000,
    CHUNKED + b"1;" + b"x" * 5_000,
    CHUNKED + b"1\r\nab",
)
others = st.integers(0, len(OTHERS) - 1).map(OTHERS.__getitem__)


class SentRequest(bytes):
    """Bytes of a client, with a short representation."""

    def __repr__(self):
        return f"{self[:60]!r} and so on, {len(self)} bytes, sum {hash(bytes(self))}"


anything = st.one_of(lengths, chunks, others, st.binary(max_size=200))
streams = st.lists(anything, min_size=1, max_size=4).map(
    lambda parts: SentRequest(b"".join(parts))
)
cuts = st.tuples(
    st.floats(0, 1), st.lists(st.sampled_from([1, 2, 3, 50, 1_000]), min_size=1, max_size=3)
)


SHARED = (type, ModuleType, FunctionType, CodeType)
SHARED_NAMES = (vars(reader_module), vars(builtins))


def reachable(roots):
    """Return the bytes of all objects reachable from the roots, without modules, classes and functions."""
    seen, pending, size = set(map(id, SHARED_NAMES)), list(roots), 0
    while pending:
        result = pending.pop()
        if id(result) not in seen and not isinstance(result, SHARED):
            seen.add(id(result))
            size += sys.getsizeof(result)
            pending += gc.get_referents(result)
    return size


def pieces_of(data, cut):
    """Yield data in small pieces for some turns, and in the largest pieces before and after them."""
    where, lengths = cut
    begin, small = 0, [*lengths] * 30
    while begin < len(data):
        is_small = begin >= where * len(data) and small
        end = begin + (small.pop() if is_small else SCANNED_BYTES)
        yield memoryview(data)[begin:end]
        begin = end


BEHIND_A_LONG_HEAD = SentRequest(HELLO + HEAD + b"X: " + b"x" * 7_000 + b"\r\n\r\n" + HELLO * 400)
"""The first eight KiB end after the long head; as many bytes have arrived again when the head is removed."""


@pytest.mark.slow
@given(streams, cuts, st.integers(0, 3))
@example(BEHIND_A_LONG_HEAD, (1, [1]), 0)
def test_reader_accounts_for_its_memory_within_documented_bounds(data, cut, kept):
    reader = RequestReader(BODY_BYTES)
    empty = reachable([reader])
    worked_on = []
    for piece in pieces_of(data, cut):
        reader.feed(piece)
        try:
            head = reader.next_request()
        except ApiError:
            reader.drop()
            head = None
        if head is not None:
            worked_on = [*worked_on, head][-kept:] if kept else []
        held_bytes = reader.held_bytes
        counted = held_bytes + sum(head.size for head in worked_on)
        # One request is parsed in a turn; pipelined requests follow in later turns.
        assert held_bytes - reader.unparsed_bytes <= MOST_OF_A_READER
        assert head is not None or held_bytes <= MOST_OF_A_READER
        assert head is not None or held_bytes <= reader.most_bytes
        # A growing buffer is an eighth longer than its contents.
        held = reachable([reader, *worked_on]) - empty
        assert held <= counted * 9 / 8 + 4_000, (held, counted)
    reader.drop()
    assert reader.held_bytes == 0


@given(streams, cuts)
def test_reader_parses_the_same_requests_at_any_split(data, cut):
    def parse_pieces(where):
        reader, outcome = RequestReader(BODY_BYTES), []
        for piece in pieces_of(data, where):
            reader.feed(piece)
            with contextlib.suppress(ApiError):
                while (head := reader.next_request()) is not None:
                    outcome.append((head.method, bytes(head.body), reader.dropped_bytes is None))
                continue
            reader.drop()
            return [*outcome, "refused"]
        return outcome

    # Reading ends at a body that is too long; the cuts decide how much of the body was read.
    whole, parts = parse_pieces((1, [1])), parse_pieces(cut)
    assert [entry[-1] for entry in whole] == [entry[-1] for entry in parts]
    assert [entry for entry in whole if entry[-1] is True] == [
        entry for entry in parts if entry[-1] is True
    ]


class Waiting:
    """An application that waits for an event, and then answers with the size in the path.

    Attributes:
        release: The event.
    """

    def __init__(self):
        self.release = threading.Event()

    def __call__(self, environment, start_response):
        size = int(environment["QUERY_STRING"] or 0)
        if not size:
            self.release.wait()
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"z" * size]


def sent(stack, server, data, received=None):
    """Return a client that has sent as much of a request as the server reads."""
    client = stack.enter_context(server.connect(received))
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        unsent = memoryview(data)
        while unsent:
            unsent = unsent[client.send(unsent) :]
    client.settimeout(60)
    return client


def attacks():
    """Return inputs by which a client without a token can occupy memory, and the number of its connections."""
    body = b"x" * (16 * MEGABYTE)
    post = HEAD + b"Content-Length: %d\r\n\r\n"
    return {
        "whole bodies that wait": (post % len(body) + body, 30),
        "requests sent ahead": (HELLO * 60_000, 400),
        "trailers without an end": (CHUNKED + b"0\r\nX: " + b"t" * 2_000_000, 100),
        "headers without an end": (HEAD + b"X: " + b"h" * 390_000, 200),
        "chunks without an end": (CHUNKED + b"2\r\nab\r\n" * 20_000, 50),
        "answers that nobody takes": (b"GET /?8000000 HTTP/1.1\r\nHost: a\r\n\r\n", 60),
    }


@pytest.mark.slow
def test_connections_together_stay_within_the_memory_budget():
    limit = 64 * MEGABYTE
    for kind, (sends, number) in attacks().items():
        application = Waiting()
        with (
            running(application, threads=2, body_bytes=16 * MEGABYTE) as server,
            ExitStack() as clients,
        ):
            budget = server.front.table
            budget.most_bytes = limit
            with traced_memory() as measure:
                for _ in range(number):
                    sent(clients, server, sends, 4_096)
                quiet(lambda measure=measure: measure()[0] // SMALL_BYTES)
                (grown, _), total = measure(), budget.total
                # Each of the two threads may produce one answer beyond the limit.
                assert total <= limit + 16 * MEGABYTE, (kind, total)
                # Python objects of idle connections on both sides, and of their answers.
                objects = number * 20_000 + 8 * MEGABYTE
                most = (total + number * SMALL_BYTES) * 9 / 8 + objects
                assert grown <= most, (kind, grown, total)
                application.release.set()
                clients.close()
                eventually(lambda budget=budget: budget.total == 0, f"all is released: {kind}")
                eventually(lambda most=objects: measure()[0] < most, f"it is free: {kind}")


def test_oldest_unread_answers_are_dropped_beyond_the_memory_budget():
    size, answered = 16 * MEGABYTE, []

    def application(environment, start_response):
        start_response("200 OK", [("Content-Length", str(size))])
        answered.append(environment["QUERY_STRING"])
        return [b"z" * size]

    with running(application) as server, ExitStack() as clients:
        budget = server.front.table
        # The kernel accepts at most 4 MiB of each answer.
        budget.most_bytes = 20 * MEGABYTE
        for number in range(3):
            newest = sent(clients, server, request_of("GET", f"/?{number}"), 4_096)
            eventually(lambda number=number: answered[number:], "it is answered")
            eventually(lambda: len(budget) == 1, "the oldest answer is dropped")
        assert budget.total <= budget.most_bytes
        assert len(receive(newest).body) == size


def whole(stack, server, data):
    """Return a client with a complete request in progress."""
    before = server.front.table.count(Phase.ANSWERING)
    client = stack.enter_context(server.connect())
    client.sendall(data)
    eventually(lambda: server.front.table.count(Phase.ANSWERING) > before, "it is worked on")
    return client


def quiet(size):
    """Wait until a size has not changed for a while."""
    last = []

    def is_quiet():
        last.append(size())
        return len(last) > 20 and len(set(last[-20:])) == 1

    eventually(is_quiet, "all has come")


@pytest.fixture
def full():
    """A server with a budget filled by two large waiting requests, its application, the clients and a request."""
    application = Waiting()
    body = b"x" * (4 * MEGABYTE)
    post = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with (
        running(application, threads=4, body_bytes=4 * MEGABYTE) as server,
        ExitStack() as stack,
    ):
        server.front.table.most_bytes = 9 * MEGABYTE
        clients = [whole(stack, server, post) for _ in range(2)]
        yield server, application, clients, post
        application.release.set()


def test_full_budget_delays_large_requests_and_admits_small_ones(full):
    server, application, clients, post = full
    budget = server.front.table
    with server.connect() as late:
        sender = threading.Thread(target=lambda: late.sendall(post))
        sender.start()
        eventually(lambda: budget.waiting_connections, "it waits for room")
        assert server.ask(b"GET /?5 HTTP/1.1\r\nHost: a\r\n\r\n").body == b"zzzzz"
        assert budget.total <= budget.most_bytes
        application.release.set()
        for client in (*clients, late):
            assert receive(client).status == 200
        sender.join()
        eventually(lambda: budget.total == 0, "all is released")


@pytest.mark.slow
def test_request_without_memory_in_time_is_refused_with_retry_after(full):
    server, _, _, post = full
    with ExitStack() as stack:
        answer = receive(sent(stack, server, post))
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
