# SPDX-License-Identifier: Apache-2.0
"""The schedule explorer: the store's writes in every interleaving, on a real database.

Each session runs operations of the store in a thread with its own store, and stops before every statement. The
scheduler resumes one session at a time, reads from the server which sessions wait for locks, and tries all
interleavings with a bounded number of preemptions. The outcome of each must be that of a serial order. The scripts
follow PostgreSQL's isolation tester, the bound follows CHESS.

`frontier.py` skips schedules that differ only in the order of independent statements. `worlds.py` lists all writes. A
failure report contains the choices of the schedule; `Exploration.replay` runs it again.
"""
