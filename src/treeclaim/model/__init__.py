# SPDX-License-Identifier: Apache-2.0
"""The values and rules that all layers share; no database, no HTTP."""
