# SPDX-License-Identifier: Apache-2.0
"""Plans of moves (contract page 101, section 5): exact in small worlds, heuristic in large ones.

This package imports the consumers of `planning`, and `placing` with its counts.
"""
