# SPDX-License-Identifier: Apache-2.0
"""The reshaper (contract page 75)."""
