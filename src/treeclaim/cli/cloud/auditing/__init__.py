# SPDX-License-Identifier: Apache-2.0
"""`treeclaim audit`: what is wrong with what is stored, and its repair."""
