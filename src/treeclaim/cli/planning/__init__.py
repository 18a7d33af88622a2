# SPDX-License-Identifier: Apache-2.0
"""Commands that ask for candidates, and why there are none."""
