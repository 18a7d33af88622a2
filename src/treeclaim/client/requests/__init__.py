# SPDX-License-Identifier: Apache-2.0
"""What a client sends: queries, flavors as queries, bodies of claims."""
