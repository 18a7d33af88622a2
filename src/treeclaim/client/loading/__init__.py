# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load`: compares a topology with an endpoint, and writes the difference."""
