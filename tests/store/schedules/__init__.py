# SPDX-License-Identifier: Apache-2.0
"""The schedule explorer: the store's writes in every interleaving, on a real database.

Sessions run operations of the store, each in a thread with a store of its own, and stop before
every statement. A scheduler lets exactly one of them go on, tells from the server's view of its
locks who waits, and tries all interleavings with a bounded number of preemptions. What comes of
each must be what comes of some serial order. It is made after PostgreSQL's isolation tester, which
has the scripts, and after CHESS, which has the bound.

`frontier.py` leaves out schedules that differ only in the order of independent statements.

`worlds.py` has the table of all that writes. A schedule that went wrong is described with its choices, by which
`Exploration.replay` runs it again.
"""
