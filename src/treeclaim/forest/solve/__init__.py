# SPDX-License-Identifier: Apache-2.0
"""The search: anchors, blocks of partial candidates, rules, the limit, and what is kept of a search.

Knows feasibility and what is below it.
"""
