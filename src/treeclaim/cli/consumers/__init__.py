# SPDX-License-Identifier: Apache-2.0
"""Commands on consumers: allocations, holds, stored requests, and the audit."""
