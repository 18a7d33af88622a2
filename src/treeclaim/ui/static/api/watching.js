// SPDX-License-Identifier: Apache-2.0
/** Watches changes (contract page 99, section 4): by a stream or, if there is none, by requests. */

import { Trouble } from "./errors.js";

const SHORTEST_PAUSE = 1_000;
/* Milliseconds between two attempts to watch. */

const WAIT_SECONDS = 30;
/* How long the server may delay an answer if it does not stream. */

/**
 * Watch until aborted, or until the token may not watch.
 *
 * @param {Client} api The calls.
 * @param {string} cursor Of the list that was read.
 * @param {object} listener `changes(list)` is called with what changed, and `relist()` if all has
 *   to be read again; it returns the new cursor. Both may return promises, for which the next
 *   changes wait. `live(isLive)` is called when watching succeeds and fails.
 * @param {AbortSignal} signal Ends it.
 */
export async function watch(api, cursor, listener, signal) {
  const state = { cursor };
  let follow = stream;
  while (!signal.aborted) {
    try {
      await follow(api, state, listener, signal);
    } catch (error) {
      if (signal.aborted) return;
      listener.live(false);
      if (error.kind === Trouble.REFUSED || error.kind === Trouble.HIDDEN) return;
      if (error.kind === Trouble.GONE) state.cursor = await listener.relist();
      else if (error.status === 406 && follow === stream) follow = request;
      else await pause(Math.max(SHORTEST_PAUSE, 1000 * (error.retryAfter ?? 0)), signal);
    }
  }
}

async function stream(api, state, listener, signal) {
  const headers = { Accept: "text/event-stream", "Last-Event-ID": state.cursor };
  const answer = await api.send("/treeclaim/changes", { headers, signal });
  listener.live(true);
  for await (const event of events(answer.body)) {
    // The cursor moves once the changes are taken in, so that a failure loses none.
    if (event.data) await report(listener, JSON.parse(event.data));
    if (event.id) state.cursor = event.id;
  }
  // Streams end after an hour; a stream that ends at once must not be requested without a pause.
  await pause(SHORTEST_PAUSE, signal);
}

async function request(api, state, listener, signal) {
  const query = { since: state.cursor, wait: WAIT_SECONDS };
  const begin = performance.now();
  const answer = await api.get("/treeclaim/changes", query, signal);
  listener.live(true);
  await report(listener, answer);
  state.cursor = answer.cursor;
  // A server that cannot delay answers returns an empty answer at once.
  if (performance.now() - begin < SHORTEST_PAUSE) await pause(SHORTEST_PAUSE, signal);
}

async function report(listener, { changes, catalogue }) {
  if (changes.length || catalogue) await listener.changes(changes);
}

/** Read server-sent events from a body. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text = (text + value).replaceAll("\r\n", "\n");
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block) {
  const event = { id: "", data: "" };
  for (const line of block.split("\n")) {
    const [, name, value] = /^(id|data): ?(.*)$/s.exec(line) ?? [];
    if (name === "id") event.id = value;
    if (name === "data") event.data += (event.data ? "\n" : "") + value;
  }
  return event;
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
