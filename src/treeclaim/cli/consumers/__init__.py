# SPDX-License-Identifier: Apache-2.0
"""Commands that change a cloud: load, edit, claim, release, copy."""
