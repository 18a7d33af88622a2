# SPDX-License-Identifier: Apache-2.0
"""Replays arrivals in a cloud in memory, by several orders (contract page 101, section 6).

Knows the Forest and how queries are read; no service and no database.
"""
