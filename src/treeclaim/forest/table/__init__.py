# SPDX-License-Identifier: Apache-2.0
"""The columns: providers, inventories and memberships by row, their canonical order, and prepared texts.

This package imports only `model`. Loads of the database and answers to clients start here.
"""
