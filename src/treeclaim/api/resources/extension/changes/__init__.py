# SPDX-License-Identifier: Apache-2.0
"""Watching (contract page 99, section 4)."""
