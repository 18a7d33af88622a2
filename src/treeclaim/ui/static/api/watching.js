// SPDX-License-Identifier: Apache-2.0
/** Watches what changes (contract page 99, section 4), by the best way that the server has. */

import { Trouble } from "./errors.js";

const SHORTEST_PAUSE = 1_000;
/* Milliseconds between two attempts to watch. */

const POLL_PAUSE = 5_000;
/* Milliseconds between two readings where the server has no feed. */

const WAIT_SECONDS = 30;
/* How long the server may hold an answer where it does not stream. */

/** How the page learns of changes. */
export const Way = Object.freeze({ STREAM: "stream", ASK: "ask", POLL: "poll" });

/**
 * Watch until aborted.
 *
 * @param {Client} api The calls.
 * @param {string} cursor Of the list that was read.
 * @param {object} listener `changes(list, catalogue)` for what changed; `relist()` where all has to
 *   be read again: the cursor is too old, or the server has no feed; `way(Way)` how it is watched.
 *   The first two may return promises; the next changes wait for them.
 * @param {AbortSignal} signal Ends it.
 */
export async function watch(api, cursor, listener, signal) {
  const state = { cursor };
  let way = Way.STREAM;
  while (!signal.aborted) {
    try {
      if (way === Way.STREAM) await stream(api, state, listener, signal);
      else if (way === Way.ASK) await ask(api, state, listener, signal);
      else await poll(listener, signal);
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return;
      if (error.kind === Trouble.REFUSED || error.kind === Trouble.HIDDEN) return;
      if (error.kind === Trouble.GONE) {
        state.cursor = (await listener.relist()) ?? state.cursor;
      } else if (error.status === 406) {
        way = Way.ASK;
      } else if (error.kind === Trouble.MISSING) {
        way = Way.POLL;
      } else {
        await pause(Math.max(SHORTEST_PAUSE, 1000 * (error.retryAfter ?? 0)), signal);
      }
    }
  }
}

async function stream(api, state, listener, signal) {
  const headers = { Accept: "text/event-stream", "Last-Event-ID": state.cursor };
  const answer = await api.send("/treeclaim/changes", { headers, signal });
  listener.way(Way.STREAM);
  for await (const event of events(answer.body)) {
    // The cursor moves once the changes are taken in, so that a failure loses none.
    if (event.data) await tell(listener, JSON.parse(event.data));
    if (event.id) state.cursor = event.id;
  }
  // Streams end after an hour; one that ends at once must not be asked for without a rest.
  await pause(SHORTEST_PAUSE, signal);
}

async function ask(api, state, listener, signal) {
  const query = { since: state.cursor, wait: WAIT_SECONDS };
  const begin = performance.now();
  const answer = await api.get("/treeclaim/changes", query, signal);
  listener.way(Way.ASK);
  await tell(listener, answer);
  state.cursor = answer.cursor;
  // A server that cannot hold answers gives an empty one at once.
  if (performance.now() - begin < SHORTEST_PAUSE) await pause(SHORTEST_PAUSE, signal);
}

async function poll(listener, signal) {
  listener.way(Way.POLL);
  const begin = performance.now();
  await pause(POLL_PAUSE, signal);
  if (!signal.aborted) await listener.relist();
  // A large cloud is read less often, so that watching stays a small part of the server's work.
  await pause(4 * Math.max(0, performance.now() - begin - POLL_PAUSE), signal);
}

async function tell(listener, { changes, catalogue }) {
  if (changes.length || catalogue) await listener.changes(changes, catalogue);
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
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
