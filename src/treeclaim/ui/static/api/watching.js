// SPDX-License-Identifier: Apache-2.0
/** Watches changes (contract page 99, section 4): the server answers when there is one. */

import { Trouble } from "./errors.js";

const SHORTEST_PAUSE = 1_000;
/* Milliseconds between the beginnings of two requests. */

const WAIT_SECONDS = 30;
/* How long the server may delay an answer. */

/**
 * Watch until aborted, or until the token may not watch.
 *
 * @param {Client} api The calls.
 * @param {string} cursor Of the list that was read.
 * @param {object} listener `changes(list)` is called with the changes, and `relist()` if all has
 *   to be read again; it returns the new cursor. Both may return promises, for which the next
 *   changes wait. `live(isLive)` is called when watching succeeds and fails.
 * @param {AbortSignal} signal Ends it.
 */
export async function watch(api, cursor, listener, signal) {
  let since = cursor;
  let wait = 0;
  while (!signal.aborted) {
    const begin = performance.now();
    let least = SHORTEST_PAUSE;
    try {
      const answer = await api.get("/treeclaim/changes", { since, wait }, signal);
      listener.live(true);
      if (answer.changes.length || answer.catalogue) await listener.changes(answer.changes);
      // The cursor moves once the changes are taken in, so that a failure loses none.
      since = answer.cursor;
      wait = WAIT_SECONDS;
    } catch (error) {
      if (signal.aborted) return;
      listener.live(false);
      if (error.kind === Trouble.REFUSED || error.kind === Trouble.HIDDEN) return;
      if (error.kind === Trouble.GONE) since = await listener.relist();
      least = Math.max(least, 1000 * (error.retryAfter ?? 0));
      // The next answer comes at once: it says that watching works again.
      wait = 0;
    }
    await pause(least - (performance.now() - begin), signal);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
