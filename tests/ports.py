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
    """Return an unused loopback port, which no other caller receives.

    A server binds its port some time after the choice. If another process chose the same port meanwhile, a test would
    use a foreign server. An abstract socket name reserves the port until the process ends.
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
