# SPDX-License-Identifier: Apache-2.0
"""Fixed bounds of the server, with their reasons."""

HEAD_BYTES = 400 * 1024
"""Longest request line with headers. A token of Keystone has up to some KiB and a scheduler's query
tens of them; this is what was possible before."""

TARGET_BYTES = 64 * 1024
"""Longest URL: 1,500 aggregates in a query."""

SMALL_REQUEST = 16 * 1024
"""Bytes of an unfinished request that every connection may have without asking. Nearly all claims
and questions are shorter; 4,096 connections have 64 MiB of them at most."""

INCOMING_BYTES = 128 * 1024 * 1024
"""Bytes of unfinished requests beyond that, over all connections of a worker: eight of the longest
bodies. When they are exceeded the request that has taken longest is given up."""

UNSENT_BYTES = 256 * 1024 * 1024
"""Bytes of answers that clients have not taken, over all connections of a worker. The whole
inventory of 10,000 providers is a few MB. When they are exceeded, the client that has taken
longest is dropped."""

STREAM_BYTES = 256 * 1024
"""Of a streamed answer so much is made before the client has to have taken it: enough to keep a
fast one busy while a thread makes the next."""

SLOWEST_BYTES = 16 * 1024
"""What a client has to take in each `answer_seconds` of an answer that is not finished: 500 bytes
a second at the default, far below what any network gives to a client that reads."""

EARLY_BYTES = 64 * 1024
"""Bytes of the next request that are taken while one is answered. Reading goes on so that a client
that hangs up is noticed; no client that exists sends so much ahead."""

LINGER_SECONDS = 5.0
"""How long a connection that is closed with an unread body is read from, so that the client sees
the answer instead of a reset. Those that send in good faith stop at the answer."""

LINGER_BYTES = 32 * 1024 * 1024
"""How much is read then: twice the longest body, at the default."""

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
"""Between two looks at all deadlines; they are late by so much at most. 4,096 connections take
less than a millisecond."""

RETRY_AFTER = 1
"""Seconds in the Retry-After header when too many requests wait for a thread."""

WAITING_SECONDS = 30.0
"""How long a request waits for a thread at most; then it is refused with 503. Clients of Placement
give up after a minute, and then ask again: what is not answered in half of it rather is refused."""

GONE_SECONDS = 1.0
"""A request that has waited for a thread so long is dropped if its client has hung up meanwhile.
Below it is answered, as a client may close its half of a connection and still read."""

GRACE_SECONDS = 30.0
"""How long a worker that stops may take for requests that it has begun."""

ARRIVAL_SECONDS = 1.0
"""How long a worker that stops waits for requests on connections that are open without one: they
may be on their way, and it could not tell the client that they are not answered."""

LOADER_SECONDS = 12 * 3600.0
"""Age from which on no worker is forked from a loader any more: half of the time for which the change
feed is kept, by which a worker learns what has changed since its loader has loaded."""

SILENCE_SECONDS = 20.0
"""How long a loader may say nothing. While it checks and loads it says every second that it works; to fork
it needs milliseconds, and on a machine without memory it is better replaced."""

WORKING_SECONDS = 1.0
"""How often it says so."""

LOADERS = 3
"""How many loaders that stand still are replaced at once; then somebody else has to decide."""

READY_SECONDS = 120.0
"""How long a worker may take until it answers: longer than to load a million providers by itself and than
to find out that the database is away."""

PULSE_SECONDS = 2.0
"""Within which a worker shows that it does not stand still, or it counts as silent: its loop turns a
hundred times a second, and probes wait for some seconds."""

END_SECONDS = 5.0
"""How long a worker may take to end after its last answer before it is ended by force."""
