# SPDX-License-Identifier: Apache-2.0
"""All providers in memory, and searches among them. No SQL, no HTTP."""
