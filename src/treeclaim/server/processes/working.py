# SPDX-License-Identifier: Apache-2.0
"""What a loader does beside its work: it says that it works, and looks whether anybody hears it."""

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from treeclaim.server.bounds import WORKING_SECONDS
from treeclaim.server.processes.orders import LoadersEnd, Working


@contextmanager
def saying_that_it_works(orders: LoadersEnd) -> Iterator[None]:
    """Say in this block that this process works, and end at once when the first process is gone.

    The first process holds the other end of the standard input, and never writes. The thread that
    looks at it is gone at the end of the block.
    """
    over, end = os.pipe()

    def watch() -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(over, select.POLLIN)
        while not (events := poll.poll(WORKING_SECONDS * 1000)):
            orders.tell(Working())
        if any(descriptor == 0 for descriptor, _ in events):
            os._exit(1)

    thread = threading.Thread(target=watch, name="first process")
    thread.start()
    try:
        yield
    finally:
        os.close(end)
        thread.join()
        os.close(over)
