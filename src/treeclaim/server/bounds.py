# SPDX-License-Identifier: Apache-2.0
"""Fixed bounds of the server, with their reasons."""

HEAD_BYTES = 400 * 1024
"""Longest request line with headers. A token of Keystone has up to some KiB and a scheduler's query
tens of them; this is what servers before this one allowed."""

TARGET_BYTES = 64 * 1024
"""Longest URL: 1,500 aggregates in a query."""

MOST_HEADERS = 200
"""Headers of a request: each costs time and memory, however short it is. Clients and proxies send 30."""

TRAILER_BYTES = 8 * 1024
"""Trailers after a chunked body. Nothing here uses any."""

CHUNK_LINE_BYTES = 1024
"""The line before a chunk: its size, and extensions that nothing here uses."""

READ_BYTES = 64 * 1024
"""Read from a connection in one turn of the event loop, of a body whose length was announced."""

SCANNED_BYTES = 8 * 1024
"""The same for everything that has to be scanned: the smallest chunks take more than a millisecond."""

HELD_BYTES = 256 * 1024 * 1024
"""Bytes that all connections of a worker hold together, of any kind: unfinished requests, requests that
wait or are worked on, unread answers, what watches remember. Sixteen of the longest
bodies. Twice the longest body where that is more."""

SMALL_BYTES = 16 * 1024
"""Bytes that every connection may hold without asking. Nearly all claims and questions are shorter;
4,096 connections have 64 MiB of them at most."""

WATCH_BYTES = HELD_BYTES // 4
"""Bytes that all watches of a worker may keep, as they last for an hour: some hundred watchers of a
thousand trees each, and any number of watchers of everything."""

REQUEST_COST = 6 * 1024
"""Bytes of memory of a request beside its text: the environment, and the objects that run it."""

HEADER_COST = 300
"""Bytes of memory of each header: its name and value, as two objects in the environment."""

STREAM_BYTES = 256 * 1024
"""Bytes of a streamed answer that are made ahead of the client: enough to keep a
fast one busy while a thread makes the next."""

SLOWEST_BYTES = 16 * 1024
"""Bytes that a client must read in each `answer_seconds` of an unfinished response: 500 bytes
a second at the default, far below what any network gives to a client that reads."""

LINGER_SECONDS = 5.0
"""Seconds for which a connection that is closed with an unread body is read from, so that the client sees
the answer instead of a reset. Those that send in good faith stop at the answer."""

LINGER_BYTES = 32 * 1024 * 1024
"""Bytes that are read and dropped of a connection: twice the longest body, at the default."""

BACKLOG = 1024
"""Connections that wait to be accepted. The kernel may cut it (net.core.somaxconn)."""

ACCEPTED_AT_ONCE = 8
"""Connections that a worker accepts in one turn of its loop: few, so that workers share them."""

ACCEPT_PAUSE = 0.1
"""Seconds without accepting where the machine has no file descriptors left."""

SPARE_FILES = 256
"""File descriptors of a worker for all but its clients: databases, logs, libraries."""

TLS_CONNECTIONS = 1024
"""Connections with TLS that a worker has at most: each has buffers of some 300 KiB."""

SWEEP_SECONDS = 0.5
"""Seconds between two checks of all deadlines, and the most they are late by. 4,096 connections take
less than a millisecond."""

ROOM_SECONDS = 5.0
"""Seconds that a request with a body longer than `SMALL_BYTES` waits for room, then 503."""

RETRY_AFTER = 1
"""Seconds in the Retry-After header when too many requests wait for a thread."""

WAITING_SECONDS = 30.0
"""Seconds that a request waits for a thread; then it gets 503. Clients of Placement
give up after a minute, and then ask again: what is not answered in half of that is better refused."""

GONE_SECONDS = 1.0
"""A request that has waited this long for a thread is dropped if its client has closed the connection
meanwhile. Before that it is begun, as somebody may send a write without waiting for its result."""

GRACE_SECONDS = 30.0
"""Seconds that a stopping worker may take for requests under way."""

ARRIVAL_SECONDS = 1.0
"""Seconds that a stopping worker waits for requests on idle connections: they
may be on their way, and it could not tell the client that they are not answered."""

INVENTORY_SECONDS = 12 * 3600.0
"""Age from which an inventory is loaded again before a worker is forked: half of the time for which the
change feed is kept, by which a worker learns what has changed since."""

SILENCE_SECONDS = 20.0
"""How long a loader may be silent, which reports every second that it works."""

WORKING_SECONDS = 1.0
"""Seconds between these reports."""

STARTS = 3
"""Loaders that the start of a service may take. If the last of them stalls or is killed too, the service ends."""

TICK_SECONDS = 0.1
"""Seconds between two looks of the master, and of a loader, at what has happened."""

READY_SECONDS = 120.0
"""How long a process may take until it answers: longer than to load a million providers by itself and than
to find out that the database is down."""

BEAT_SECONDS = 1.0
"""Seconds between two times that a worker writes that it is alive, and that it has read."""

SILENT_SECONDS = 3.5
"""Age of such a time from which a worker counts as stalled: its loop turns a hundred times a second."""

DAY_SECONDS = 24 * 3600.0
"""Seconds between two warnings about a certificate."""

END_SECONDS = 5.0
"""Seconds that a worker may take to end after its last response before it is killed."""
