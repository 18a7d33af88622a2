// SPDX-License-Identifier: Apache-2.0
/** What can go wrong with a call. */

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

/** A call that was not answered, or not with what was asked for. */
export class CallError extends Error {
  /**
   * @param {string} kind One of `Trouble`.
   * @param {string} message The server's words, or ours.
   * @param {object} more `status`, `code`, `retryAfter` (seconds).
   */
  constructor(kind, message, more = {}) {
    super(message);
    this.kind = kind;
    this.status = more.status ?? 0;
    this.code = more.code ?? "";
    this.retryAfter = more.retryAfter ?? 0;
  }
}

/**
 * Make the error of an answer.
 *
 * @param {Response} answer With a status of 400 or more.
 * @returns {Promise<CallError>}
 */
export async function errorOf(answer) {
  let detail = `${answer.status} ${answer.statusText}`;
  let code = "";
  try {
    const [error] = (await answer.json()).errors;
    detail = error.detail || detail;
    code = error.code ?? "";
  } catch { /* no error document: a proxy's page, say */ }
  const kind = BY_STATUS[answer.status] ?? (answer.status >= 500 ? Trouble.FAILED : Trouble.WRONG);
  const retryAfter = Number(answer.headers.get("retry-after")) || 0;
  return new CallError(kind, detail, { status: answer.status, code, retryAfter });
}
