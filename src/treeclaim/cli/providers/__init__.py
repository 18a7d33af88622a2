# SPDX-License-Identifier: Apache-2.0
"""Commands that show what a cloud has: providers as trees, consumers, usage."""
