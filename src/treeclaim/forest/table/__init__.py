# SPDX-License-Identifier: Apache-2.0
"""The columns: providers, inventories and memberships by row, their canonical order, and prepared texts.

Knows only `model`. Reading the database and answering clients start here.
"""
