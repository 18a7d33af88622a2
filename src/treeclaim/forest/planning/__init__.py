# SPDX-License-Identifier: Apache-2.0
"""Plans (contract page 101): what if, and what follows from it for existing consumers.

Knows placing, and everything below it. A planner is a function of a Forest, consumers, a call and a
budget, and returns the best that it has found when the time is over.
"""
