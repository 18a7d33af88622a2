# SPDX-License-Identifier: Apache-2.0
"""A cloud with a question whose answer has no end, and a watch over memory."""

import threading
from typing import Self

import psutil

from tests.clouds import World, WorldMaker
from tests.peer import memory_of

_LOOK_SECONDS = 0.1


def world(hosts: int) -> World:
    """Ordinary hosts, and a tree of which an endless question can be asked."""
    maker = WorldMaker(5)
    for number in range(hosts):
        maker.add(f"host-{number}", {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000})
    wide = maker.add("wide", {"PGPU": 8})
    for number in range(60):
        maker.add(f"wide-{number}", {"FPGA": 50 + number}, wide)
    return World(f"{hosts} hosts", maker.providers, "resources=VCPU:1,MEMORY_MB:512", (10,))


def endless(variant: int) -> str:
    """Sixty children for each of six groups."""
    wanted = [f"resources{number}=FPGA:{1 + variant % 9}" for number in range(6)]
    return f"/allocation_candidates?{'&'.join(wanted)}&group_policy=none"


class Memory:
    """Watches the memory of a server's processes, shared pages counted once."""

    def __init__(self, process: psutil.Process) -> None:
        self.most = 0
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self.most = max(self.most, memory_of(self._process))
