# SPDX-License-Identifier: Apache-2.0
"""Resource classes (contract page 60)."""
