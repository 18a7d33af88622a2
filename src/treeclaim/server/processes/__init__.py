# SPDX-License-Identifier: Apache-2.0
"""The first process and its workers: sockets, start, reload, stop, systemd."""
