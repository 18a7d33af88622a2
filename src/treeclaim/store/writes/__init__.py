# SPDX-License-Identifier: Apache-2.0
"""Runs writes: attempts, retries, commits and groups of claims."""
