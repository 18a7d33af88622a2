# SPDX-License-Identifier: Apache-2.0
"""Plans (contract page 101): assumptions, and their consequences for existing consumers.

This package imports `placing` and all packages below it. A planner is a function of a Forest, consumers, a call and
a budget, and returns the best result at the deadline.
"""
