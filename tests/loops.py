# SPDX-License-Identifier: Apache-2.0
"""Runs coroutines of tests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def in_a_loop(scene):
    """Run a function that returns a coroutine, in a thread of its own; return what that returns.

    In the thread of the tests a loop may run already: it does once a browser was driven there.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(scene())).result()
