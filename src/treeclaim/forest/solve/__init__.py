# SPDX-License-Identifier: Apache-2.0
"""The search: anchors, blocks of partial candidates, rules, the limit, and the cache of candidates.

This package imports feasibility and the packages below it.
"""
