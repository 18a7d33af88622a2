# SPDX-License-Identifier: Apache-2.0
"""Finds inconsistent rows, and repairs them (contract page 99, section 5).

Knows the operations. Each finder reads in the snapshot that it is given; each repair is a
transaction of its own that first checks that the finding holds.
"""
