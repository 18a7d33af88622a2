# SPDX-License-Identifier: Apache-2.0
"""What if, and plans (contract page 101)."""
