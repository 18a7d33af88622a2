// SPDX-License-Identifier: Apache-2.0
/** The cloud as pages show it that stay current. */

import { watch } from "../api/watching.js";
import { Cloud } from "../model/cloud.js";
import { conditionsByTree } from "../model/conditions.js";
import { Session, html, useContext, useEffect, useMemo, useState } from "./html.js";

/** Whether the cloud stays current, or when it was read. */
export const Live = ({ isLive, readAt }) => html`<span class="live">${isLive
  ? html`<span class="dot" aria-hidden="true"></span>live: changes come as they are made`
  : `as of ${readAt.toLocaleTimeString()}`}</span>`;

const NOTHING_YET = { value: undefined, error: null, conditionsError: null, isLive: false };

/**
 * Read the cloud, and keep it current.
 *
 * @returns {object} `value`, `error` and `again` as those of `useAnswer`; `trees` of the cloud;
 *   `conditions` by the root's uuid, and `conditionsError`; `isLive` and `readAt` for `Live`.
 */
export function useLiveCloud() {
  const { api, revision } = useContext(Session);
  const [state, setState] = useState(NOTHING_YET);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const update = (more) => signal.aborted || setState((before) => ({ ...before, ...more }));
    const show = (cloud) => update({ value: cloud, error: null, readAt: new Date() });
    const run = async () => {
      let cloud = await Cloud.read(api, signal);
      show(cloud);
      // The map does not wait for the signs of conditions.
      cloud.readPart("conditions").then(() => show(cloud),
        (conditionsError) => update({ conditionsError }));
      await watch(api, cloud.cursor, {
        changes: async (changes) => {
          await cloud.apply(changes);
          show(cloud);
        },
        relist: async () => {
          cloud = await cloud.readAgain();
          show(cloud);
          return cloud.cursor;
        },
        live: (isLive) => update({ isLive }),
      }, signal);
    };
    run().catch((error) => update({ error }));
    return () => abort.abort();
  }, [api, revision, turn]);
  const { value: cloud, readAt } = state;
  const { trees, conditions } = useMemo(() => ({
    trees: cloud?.trees ?? [],
    conditions: conditionsByTree([...cloud?.providers.conditions?.values() ?? []]),
  }), [cloud, readAt]);
  return { ...state, trees, conditions, again: () => setTurn(turn + 1) };
}
