# SPDX-License-Identifier: Apache-2.0
"""Batches of wanted states of providers (contract page 99, section 8): their entries, and what these are about."""
