// SPDX-License-Identifier: Apache-2.0

/** A flavor that cannot be read; the message names the key or the line. */
export class FlavorError extends Error {}
