# SPDX-License-Identifier: Apache-2.0
"""Providers with all their parts, as a Forest is loaded: some of them as records, all of them as arrays."""
