# SPDX-License-Identifier: Apache-2.0
"""A loader; `treeclaim serve` starts it, and the processes that it forks remain in this program.

Its arguments are the settings, the file descriptor of the connection to the master, and whether it is the
first loader ("first") or a successor.
"""

import signal
import socket
import sys
from importlib import import_module

from treeclaim import allocator
from treeclaim.server.processes.control import Control, report_work
from treeclaim.server.settings import ServerSettings

# Signals are for the master.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
# Before the first thread, which would otherwise get an arena of its own.
allocator.keep_large_blocks()
allocator.collect_rarely()
control = Control(socket.socket(fileno=int(sys.argv[2])))
with report_work(control):
    # The import takes seconds on a busy machine.
    generation = import_module("treeclaim.server.processes.generation")
generation.run_generation(
    ServerSettings.from_json(sys.argv[1]), control, is_first=sys.argv[3] == "first"
)
