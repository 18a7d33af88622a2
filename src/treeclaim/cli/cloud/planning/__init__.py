# SPDX-License-Identifier: Apache-2.0
"""Commands that ask for plans, but do not carry them out."""
