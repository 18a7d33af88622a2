# SPDX-License-Identifier: Apache-2.0
"""What tests of faults share: a service in processes, load on it, a proxy, and judges of what was seen."""
