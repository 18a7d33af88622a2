# SPDX-License-Identifier: Apache-2.0
"""Engines and connections, made from the options of `[placement_database]`.

Knows dialects, failures and timeouts.
"""
