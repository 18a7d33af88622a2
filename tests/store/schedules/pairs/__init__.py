# SPDX-License-Identifier: Apache-2.0
"""All pairs of clients, with one preemption and with two, on every database.

A file for each kind of worlds: a run in several processes gives them whole files, so these are
about as long as each other.
"""
