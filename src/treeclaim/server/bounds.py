# SPDX-License-Identifier: Apache-2.0
"""Fixed bounds of the server, with their reasons."""

HEAD_BYTES = 400 * 1024
"""Longest request line with headers, as in earlier servers of the Placement API. Keystone's tokens have some KiB, and
queries of schedulers tens of KiB."""

TARGET_BYTES = 64 * 1024
"""Longest URL: 1,500 aggregates in a query."""

MOST_HEADERS = 200
"""Headers of a request: even short ones cost time and memory. Clients and proxies send 30."""

TRAILER_BYTES = 8 * 1024
"""Trailers after a chunked body; the server ignores them."""

CHUNK_LINE_BYTES = 1024
"""The line before a chunk, with its size, and extensions that the server ignores."""

READ_BYTES = 64 * 1024
"""Most bytes read from a connection in one turn of the event loop, for a body of announced length."""

SCANNED_BYTES = 8 * 1024
"""Most bytes read in one turn if they must be scanned: scanning the smallest chunks takes over a millisecond."""

HELD_BYTES = 256 * 1024 * 1024
"""Most bytes of all connections of a worker: long requests until their answers are complete, and unread answers. This
suffices for fifteen of the longest bodies; the bound is at least twice the longest body."""

SMALL_BYTES = 16 * 1024
"""Bytes of a request without a reservation: 64 MiB for 4,096 connections. Nearly all claims and queries are shorter."""

WATCH_BYTES = HELD_BYTES // 4
"""Most bytes of all watches of a worker, which last up to an hour: some hundred watches of a thousand trees each, or any
number of watches of the whole inventory."""

REQUEST_COST = 6 * 1024
"""Bytes of memory of a request besides its text: the environment and the objects of the exchange."""

HEADER_COST = 300
"""Bytes of memory of each header: name and value are two objects in the environment."""

STREAM_BYTES = 256 * 1024
"""Bytes of a stream that are produced ahead of the client: enough for a fast client until a thread produces more."""

SLOWEST_BYTES = 16 * 1024
"""Bytes that a client must read of an unfinished response in each `answer_seconds`. By default this is 500 bytes a
second, far below the rate of any network."""

LINGER_SECONDS = 5.0
"""Seconds for which the server drops received bytes before it closes a connection with an unread body. The client thus
receives the answer instead of a reset. Well-behaved clients stop sending at the answer."""

LINGER_BYTES = 32 * 1024 * 1024
"""Most bytes that the server drops of a connection: by default twice the longest body."""

BACKLOG = 1024
"""Most connections that wait to be accepted; the kernel may lower it (net.core.somaxconn)."""

ACCEPTED_AT_ONCE = 8
"""Most connections that a worker accepts in one turn of its loop: few, so that workers share them."""

ACCEPT_PAUSE = 0.1
"""Seconds without accepting after file descriptors were exhausted."""

SPARE_FILES = 256
"""File descriptors that a worker reserves for databases, logs and libraries."""

TLS_CONNECTIONS = 1024
"""Most TLS connections of a worker: each has buffers of some 300 KiB."""

SWEEP_SECONDS = 0.5
"""Seconds between two checks of all deadlines, and their greatest delay. A check of 4,096 connections takes less than a
millisecond."""

ROOM_SECONDS = 5.0
"""Seconds that a request with a body longer than `SMALL_BYTES` waits for room before it gets 503."""

WAITING_SECONDS = 30.0
"""Seconds that a request waits for a thread before it gets 503: half of the minute after which clients of Placement time
out and retry."""

GONE_SECONDS = 1.0
"""Seconds of waiting for a thread after which the request of a closed connection is dropped. Earlier it is run, since a
client may send a write without waiting for its result."""

GRACE_SECONDS = 30.0
"""Seconds that a stopping worker has to finish requests."""

ARRIVAL_SECONDS = 1.0
"""Seconds that a stopping worker waits for requests on idle connections. A request may have been sent already, and its
client would not know whether it was run."""

INVENTORY_SECONDS = 12 * 3600.0
"""Age from which the inventory is reloaded before a worker is forked: half of the retention of the change feed that the
worker applies."""

SILENCE_SECONDS = 20.0
"""Seconds without a report after which a loader counts as stalled."""

WORKING_SECONDS = 1.0
"""Seconds between two reports of a loader."""

STARTS = 3
"""Most loaders that the start of a service tries. The service ends if the last one stalls or is killed too."""

TICK_SECONDS = 0.1
"""Seconds between two checks of the master, and of a loader, for events."""

READY_SECONDS = 120.0
"""Seconds in which a process must begin to answer: more than loading a million providers, or the timeout of an
unavailable database, takes."""

BEAT_SECONDS = 1.0
"""Seconds between two stamps of a worker in the liveness table."""

SILENT_SECONDS = 3.5
"""Age of the last stamp from which a worker counts as stalled."""

DAY_SECONDS = 24 * 3600.0
"""Seconds between two warnings about a certificate."""

END_SECONDS = 5.0
"""Seconds that a worker has to exit after its last response before it is killed."""
