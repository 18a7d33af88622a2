# SPDX-License-Identifier: Apache-2.0
"""Places the arrivals of a trace by several orders (contract page 98, section 2)."""
