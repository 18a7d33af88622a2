# SPDX-License-Identifier: Apache-2.0
"""Helpers of tests of faults: a service in processes, load, a proxy, and judges of histories."""
