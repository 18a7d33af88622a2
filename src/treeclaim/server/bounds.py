# SPDX-License-Identifier: Apache-2.0
"""Fixed bounds of the server, with their reasons."""

HEAD_BYTES = 400 * 1024
"""Longest request line with headers. Keystone's tokens have up to some KiB, and queries of schedulers tens of KiB;
earlier servers of the Placement API had this bound."""

TARGET_BYTES = 64 * 1024
"""Longest URL: 1,500 aggregates in a query."""

MOST_HEADERS = 200
"""Headers of a request: each costs time and memory, however short it is. Clients and proxies send 30."""

TRAILER_BYTES = 8 * 1024
"""Trailers after a chunked body; the server ignores them."""

CHUNK_LINE_BYTES = 1024
"""The line before a chunk: its size, and extensions, which the server ignores."""

READ_BYTES = 64 * 1024
"""Most bytes read from a connection in one turn of the event loop, for a body of announced length."""

SCANNED_BYTES = 8 * 1024
"""Most bytes read in one turn where they must be scanned: scanning the smallest chunks takes over a millisecond."""

HELD_BYTES = 256 * 1024 * 1024
"""Most bytes that all connections of a worker hold together: long requests while they arrive, wait and run, and
unread answers. Enough for fifteen of the longest bodies; twice the longest body if that is more."""

SMALL_BYTES = 16 * 1024
"""Bytes of a request that need no reservation. Nearly all claims and queries are shorter; for 4,096 connections this is
64 MiB."""

WATCH_BYTES = HELD_BYTES // 4
"""Most bytes that all watches of a worker keep for up to an hour: some hundred watchers of a thousand trees each,
and any number of watchers of the whole inventory."""

REQUEST_COST = 6 * 1024
"""Bytes of memory of a request besides its text: the environment, and the objects that run it."""

HEADER_COST = 300
"""Bytes of memory of each header: its name and value, as two objects in the environment."""

STREAM_BYTES = 256 * 1024
"""Bytes of a streamed answer that are produced ahead of the client: enough for a fast client while a thread
produces the next bytes."""

SLOWEST_BYTES = 16 * 1024
"""Bytes that a client must read in each `answer_seconds` of an unfinished response: 500 bytes a second by
default, far below the rate of any network."""

LINGER_SECONDS = 5.0
"""Seconds for which the server reads from a connection before it closes it with an unread body, so that the client
receives the answer instead of a reset. Well-behaved clients stop sending at the answer."""

LINGER_BYTES = 32 * 1024 * 1024
"""Most bytes that the server reads and drops of a connection: by default twice the longest body."""

BACKLOG = 1024
"""Most connections that wait to be accepted; the kernel may lower it (net.core.somaxconn)."""

ACCEPTED_AT_ONCE = 8
"""Most connections that a worker accepts in one turn of its loop: few, so that workers share them."""

ACCEPT_PAUSE = 0.1
"""Seconds without accepting after the machine has run out of file descriptors."""

SPARE_FILES = 256
"""File descriptors that a worker reserves for databases, logs and libraries."""

TLS_CONNECTIONS = 1024
"""Most TLS connections of a worker: each has buffers of some 300 KiB."""

SWEEP_SECONDS = 0.5
"""Seconds between two checks of all deadlines, and so their greatest delay. A check of 4,096 connections takes less
than a millisecond."""

ROOM_SECONDS = 5.0
"""Seconds that a request with a body longer than `SMALL_BYTES` waits for room before it gets 503."""

WAITING_SECONDS = 30.0
"""Seconds that a request waits for a thread before it gets 503. Clients of Placement time out after a minute and
retry, so the server refuses after half of that."""

GONE_SECONDS = 1.0
"""Seconds of waiting for a thread after which a request is dropped if its client has closed the connection.
Earlier it is run: a client may send a write without waiting for its result."""

GRACE_SECONDS = 30.0
"""Seconds that a stopping worker has to finish requests."""

ARRIVAL_SECONDS = 1.0
"""Seconds that a stopping worker waits for requests on idle connections: a request may have been sent already, and a
closed connection does not show whether it was run."""

INVENTORY_SECONDS = 12 * 3600.0
"""Age from which the inventory is reloaded before a worker is forked: half of the retention of the change feed, by
which a worker catches up."""

SILENCE_SECONDS = 20.0
"""Seconds without a report after which a loader counts as stalled."""

WORKING_SECONDS = 1.0
"""Seconds between two reports of a loader."""

STARTS = 3
"""Most loaders that the start of a service tries. The service ends if the last of them stalls or is killed too."""

TICK_SECONDS = 0.1
"""Seconds between two checks of the master, and of a loader, for events."""

READY_SECONDS = 120.0
"""Seconds in which a process must begin to answer: longer than loading a million providers, and than the timeout of
a database that is down."""

BEAT_SECONDS = 1.0
"""Seconds between two stamps of a worker in the liveness table."""

SILENT_SECONDS = 3.5
"""Age of the last stamp from which a worker counts as stalled."""

DAY_SECONDS = 24 * 3600.0
"""Seconds between two warnings about a certificate."""

END_SECONDS = 5.0
"""Seconds that a worker has to exit after its last response before it is killed."""
