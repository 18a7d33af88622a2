# SPDX-License-Identifier: Apache-2.0
"""Placing, ordering and counting, beside the same by search and claim.

openstack-placement is asked as Nova asks it: a search for at most 1,000 candidates, weighed by the
client, and a claim, one consumer after the other. It does some of what is asked for; the rest is
computed from that, and the table says so.
"""
