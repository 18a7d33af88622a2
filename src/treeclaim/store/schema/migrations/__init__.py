# SPDX-License-Identifier: Apache-2.0
"""Alembic migrations of Treeclaim's own tables; Placement's tables are never altered."""
