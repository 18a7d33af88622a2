# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that benchmark and tests start."""

import atexit
import secrets
import socket

_FIRST, _LAST = 20_000, 32_000
"""Below what systems give to outgoing connections, which could take a port before its server."""

_reserved: list[socket.socket] = []


@atexit.register
def _free_all() -> None:
    for reserved in _reserved:
        reserved.close()


def free_port() -> int:
    """Return an unused loopback port that this function gives to no other caller.

    A server takes its port some time after it was chosen. Were another process given the same one
    in between, a test would unknowingly use a foreign server. So a port stays reserved, by
    a name that Linux frees when the process ends.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST)
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0treeclaim-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
        else:
            _reserved.append(reservation)
            return port
