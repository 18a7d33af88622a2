# SPDX-License-Identifier: Apache-2.0
"""Resource providers, their trees, and what belongs to them."""
