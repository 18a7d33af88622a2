# SPDX-License-Identifier: Apache-2.0
"""The processes of the service: start, reload, replacement and stop."""
