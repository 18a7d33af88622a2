# SPDX-License-Identifier: Apache-2.0
"""The writes: each public function of a noun runs in one transaction."""
