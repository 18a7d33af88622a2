# SPDX-License-Identifier: Apache-2.0
"""Plans of moves (contract page 101, section 5): exact in small worlds, the best found in large ones.

This package imports the copies of the Forest in `planning`, and `placing` with its counts.
"""
