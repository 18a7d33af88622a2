# SPDX-License-Identifier: Apache-2.0
"""Finds inconsistent rows, and repairs them (contract page 99, section 5).

Each finder reads in the snapshot of its caller. Each repair is a transaction that first checks that the
finding still exists.
"""
