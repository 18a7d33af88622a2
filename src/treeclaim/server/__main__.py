# SPDX-License-Identifier: Apache-2.0
"""The program of a loader, which `treeclaim serve` starts, and of the processes that it forks.

The arguments are the settings, the file descriptor of the connection to the master, and "first" for the first loader or
"next" for a successor.
"""

import signal
import socket
import sys
from importlib import import_module

from treeclaim import allocator
from treeclaim.server.processes.control import Control, report_work
from treeclaim.server.settings import ServerSettings

# Only the master handles signals.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
# Before the first thread, which would otherwise get a separate arena.
allocator.cache_large_blocks()
allocator.collect_garbage_rarely()
control = Control(socket.socket(fileno=int(sys.argv[2])))
with report_work(control):
    # The import takes seconds on a busy machine.
    generation = import_module("treeclaim.server.processes.generation")
generation.run_generation(
    ServerSettings.from_json(sys.argv[1]), control, is_first=sys.argv[3] == "first"
)
