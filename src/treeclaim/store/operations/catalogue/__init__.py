# SPDX-License-Identifier: Apache-2.0
"""The names that providers and claims refer to: traits and resource classes."""
