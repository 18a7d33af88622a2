# SPDX-License-Identifier: Apache-2.0
"""What a client and the service agree on by headers: the microversion and the media type."""
