# SPDX-License-Identifier: Apache-2.0
"""Plans of moves (contract page 101, section 5): exact in small worlds, the best found in large ones.

Knows the copies of the Forest of this room's parent, and how consumers are placed and counted.
"""
