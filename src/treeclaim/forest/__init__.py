# SPDX-License-Identifier: Apache-2.0
"""The in-memory picture of all providers, and the search in it. No SQL, no HTTP."""
