# SPDX-License-Identifier: Apache-2.0
"""Resource providers (contract page 20)."""
