// SPDX-License-Identifier: Apache-2.0
/** The cloud as pages show it that stay current. */

import { Way, watch } from "../api/watching.js";
import { Cloud } from "../model/cloud.js";
import { Session, html, useContext, useEffect, useState } from "./html.js";

const MARKED_MILLISECONDS = 5_000;
/* How long it is kept when a tree changed; the map marks it for less. */

const LIVE = {
  [Way.STREAM]: "live: changes come as they are made",
  [Way.ASK]: "live: the server tells of changes",
  [Way.POLL]: "read again every few seconds: this server has no feed of changes",
};

/** How a page stays current, null before that is known. */
export const Live = ({ way }) => way && html`
  <span class="live"><span class="dot" aria-hidden="true"></span>${LIVE[way]}</span>`;

const NOTHING_YET = {
  value: undefined, error: null, conditionsError: null, way: null, changed: new Map(),
};

/**
 * Read the cloud, and keep it current.
 *
 * @returns {object} `value`, `error` and `again` as those of `useAnswer`; `conditionsError`; `way`,
 *   one of `Way` or null; `changed`, a new map after each change: when trees changed, by uuid.
 */
export function useLiveCloud() {
  const { api, revision } = useContext(Session);
  const [state, setState] = useState(NOTHING_YET);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const update = (more) => signal.aborted
      || setState((before) => ({ ...before, ...more(before) }));
    const show = (cloud, uuids = []) => update(({ changed }) => {
      const now = performance.now();
      const recent = [...changed].filter(([, when]) => now - when < MARKED_MILLISECONDS);
      return {
        value: cloud, error: null,
        changed: new Map([...recent, ...uuids.map((uuid) => [uuid, now])]),
      };
    });
    const run = async () => {
      let cloud = await Cloud.read(api, signal);
      show(cloud);
      // The map does not wait for the signs of conditions.
      cloud.readConditions().then(() => show(cloud),
        (conditionsError) => update(() => ({ conditionsError })));
      await watch(api, cloud.cursor, {
        changes: async (changes) => show(cloud, await cloud.apply(changes)),
        relist: async () => {
          const before = cloud;
          cloud = await before.readAgain();
          show(cloud, cloud.differencesFrom(before));
          return cloud.cursor;
        },
        way: (way) => update(() => ({ way })),
      }, signal);
    };
    run().catch((error) => update(() => ({ error })));
    return () => abort.abort();
  }, [api, revision, turn]);
  return { ...state, again: () => setTurn(turn + 1) };
}
