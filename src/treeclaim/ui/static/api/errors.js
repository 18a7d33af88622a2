// SPDX-License-Identifier: Apache-2.0
/** Errors of a call. */

/** The kinds of trouble that pages treat differently. */
export const Trouble = Object.freeze({
  LOST: "lost",
  REFUSED: "refused",
  HIDDEN: "hidden",
  MISSING: "missing",
  BUSY: "busy",
  GONE: "gone",
  FAILED: "failed",
  WRONG: "wrong",
});

const BY_STATUS = {
  401: Trouble.REFUSED,
  403: Trouble.HIDDEN,
  404: Trouble.MISSING,
  405: Trouble.MISSING,
  406: Trouble.MISSING,
  410: Trouble.GONE,
  429: Trouble.BUSY,
  503: Trouble.BUSY,
};

/**
 * A call that had no answer, or an answer with an error.
 *
 * `kind` is one of `Trouble`; `status` is 0 without an answer; `retryAfter` is in seconds.
 */
export class CallError extends Error {
  constructor(kind, message, { status = 0, retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { kind, status, retryAfter });
  }
}

/** Return the CallError for an answer with a status of 400 or more. */
export async function errorOf(answer) {
  const { status, statusText, headers } = answer;
  // A proxy's answer may be a page instead of an error document.
  const document = await answer.json().catch(() => null);
  const detail = document?.errors?.[0]?.detail || `${status} ${statusText}`;
  const kind = BY_STATUS[status] ?? (status >= 500 ? Trouble.FAILED : Trouble.WRONG);
  return new CallError(kind, detail, {
    status, retryAfter: Number(headers.get("retry-after")) || 0,
  });
}

/** Return what a call returns, or `otherwise` if the policy hides it or the server lacks it. */
export const ifAllowed = (call, otherwise) => call.catch((error) => {
  if (error.kind === Trouble.HIDDEN || error.kind === Trouble.MISSING) return otherwise;
  throw error;
});
