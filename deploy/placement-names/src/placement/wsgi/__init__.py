# SPDX-License-Identifier: Apache-2.0
"""Placement's names, which lead to Treeclaim."""
