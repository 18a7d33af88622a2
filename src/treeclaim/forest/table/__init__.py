# SPDX-License-Identifier: Apache-2.0
"""The columns: providers, inventories and memberships by row, their canonical order, and prepared texts.

Knows `model` alone. Whoever reads the database or answers a client starts here.
"""
