# SPDX-License-Identifier: Apache-2.0
"""Commands that ask for plans, and carry out none."""
