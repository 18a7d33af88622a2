# SPDX-License-Identifier: Apache-2.0
"""What a worker makes of its process before it answers."""

import socket
import sys
from typing import Any, cast

import pytest

from treeclaim.server.processes import worker


class SeenError(Exception):
    """Ends the beginning of a worker."""


def test_its_threads_hand_over_sooner_than_a_search_takes(monkeypatch):
    """Else whoever is woken waits for 5 ms beside a thread that computes, at each hand-over."""

    def services(_groundwork):
        raise SeenError(sys.getswitchinterval())

    for name in ("_watch_parent", "signal.signal"):
        monkeypatch.setattr(f"{worker.__name__}.{name}", lambda *_: None)
    monkeypatch.setattr(worker, "_services", services)
    before = sys.getswitchinterval()
    nothing = cast("Any", None)
    try:
        with pytest.raises(SeenError) as seen, socket.socket() as unused:
            worker.work(nothing, unused, unused)
    finally:
        sys.setswitchinterval(before)
    assert seen.value.args[0] <= 0.001
