# SPDX-License-Identifier: Apache-2.0
"""A loader process; `treeclaim serve` starts it, and it becomes workers.

It is given the settings, and the file descriptor of the connection to the first process.
"""

import signal
import sys
from importlib import import_module

from treeclaim import allocator
from treeclaim.server.processes.orders import LoadersEnd, saying_that_it_works
from treeclaim.server.settings import ServerSettings

# The first process decides what signals mean.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
# Before the first thread, which would get an arena of its own.
allocator.keep_large_blocks()
allocator.collect_rarely()
orders = LoadersEnd(int(sys.argv[2]))
with saying_that_it_works(orders):
    # That alone takes seconds on a busy machine.
    loader = import_module("treeclaim.server.processes.loader")
loader.main(ServerSettings.from_json(sys.argv[1]), orders)
