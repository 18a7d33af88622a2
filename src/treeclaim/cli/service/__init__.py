# SPDX-License-Identifier: Apache-2.0
"""Commands that look after a service of one's own: its database and its configuration."""
