# SPDX-License-Identifier: Apache-2.0
"""Commands that maintain a service: its database and its configuration."""
