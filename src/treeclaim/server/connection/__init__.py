# SPDX-License-Identifier: Apache-2.0
"""One connection: it reads requests, writes answers, and keeps their deadlines."""
