# SPDX-License-Identifier: Apache-2.0
"""The service under contention and faults: real servers, real processes, real kills."""
