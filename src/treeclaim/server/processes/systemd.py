# SPDX-License-Identifier: Apache-2.0
"""Reports the state of the service to systemd (sd_notify(3))."""

import os
import socket
import time


def notify(state: str) -> None:
    """Send a state such as READY=1; without NOTIFY_SOCKET, or if nobody listens, do nothing."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(state.encode(), address)
        except OSError:
            # A watcher that is away must not stop the service.
            return


def reloading() -> str:
    """Return the state of a reload; systemd requires the time in it."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}"
