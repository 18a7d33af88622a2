# SPDX-License-Identifier: Apache-2.0
"""Mutated requests, reproducible from a seed."""

import contextlib
import random
import socket
from concurrent.futures import ThreadPoolExecutor

_CALLER = b"Host: a\r\nX-Auth-Token: admin\r\nOpenStack-API-Version: placement 1.39\r\n"
_JSON = b"Content-Type: application/json\r\n"
_CHUNKS = b'c\r\n{"name": "x"\r\n1\r\n}\r\n0\r\n\r\n'
_SEEDS = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /resource_providers?name=x&in_tree=y HTTP/1.1\r\n%b\r\n" % _CALLER,
    b"PUT /traits/CUSTOM_A HTTP/1.1\r\n%b%bContent-Length: 2\r\n\r\n{}" % (_CALLER, _JSON),
    b"POST /resource_providers HTTP/1.1\r\n%b%bTransfer-Encoding: chunked\r\n\r\n%b"
    % (_CALLER, _JSON, _CHUNKS),
    b"GET /allocation_candidates?resources=VCPU:1 HTTP/1.0\r\n%b\r\n" % _CALLER,
)
_PARTS = (
    b"\r\n", b"\n", b"\r", b"\0", b"\x1b[2J", b"%0A", b"%00", b"%", b"%zz", b" ", b"\t", b":", b"\xff",
    b"\xc3\x28", b"HTTP/1.1", b"HTTP/9.9", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    b"Host: b\r\n", b"GET ", b"CONNECT ", b"//", b"?", b"#", b"http://x", b"A" * 9000, b"\r\n\r\n",
    b"OpenStack-API-Version: placement \xb2.1\r\n", b"Accept: \xff;q=x\r\n", b"0\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00",
)  # fmt: skip
_ANSWER_SECONDS = 0.2
"""Timeout of an answer: many mutated requests are incomplete, and never answered."""


def hostile(seed):
    chance = random.Random(seed)
    data = bytearray(chance.choice(_SEEDS))
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            data[place:place] = chance.choice(_PARTS)
        elif kind == 1:
            del data[place : place + chance.randint(1, 20)]
        elif kind == 2 and place < len(data):
            data[place] = chance.randrange(256)
        elif kind == 3:
            data[place:place] = data[: chance.randint(1, 60)]
        else:
            data[place:place] = chance.randbytes(chance.randint(1, 30))
    return bytes(data)


def send(address, data, seed):
    """Send bytes in up to three pieces; return the answer within `_ANSWER_SECONDS`."""
    chance = random.Random(seed)
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    received = b""
    with socket.create_connection(address, timeout=30) as client, contextlib.suppress(OSError):
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            client.sendall(data[begin:end])
        if chance.random() < 0.5:
            client.shutdown(socket.SHUT_WR)
        client.settimeout(_ANSWER_SECONDS)
        while piece := client.recv(1 << 16):
            received += piece
    return received


def attack(address, seeds, *, always_http=True, at_once=8):
    """Send the bytes of many seeds; check that no answer is an internal error.

    Args:
        address: Address of the server.
        seeds: Seeds of the bytes to send.
        always_http: Whether all answers have a head; some servers answer a line without a version by HTTP/0.9.
        at_once: Number of concurrent clients, which mostly wait.
    """

    def attack_once(seed):
        answer = send(address, hostile(seed), seed)
        if answer and always_http:
            assert answer.startswith(b"HTTP/1."), (seed, answer[:100])
        assert b" 500 " not in answer[:40], (seed, hostile(seed), answer[:500])
        assert b"Traceback" not in answer, seed

    with ThreadPoolExecutor(at_once) as clients:
        for _ in clients.map(attack_once, seeds):
            pass
