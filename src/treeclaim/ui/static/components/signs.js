// SPDX-License-Identifier: Apache-2.0
/** The signs of trees with conditions, for maps that are not kept current. */

import * as endpoints from "../api/endpoints.js";
import { Conditions } from "../model/conditions.js";
import { html, useAnswer, useMemo } from "./html.js";
import { Failure } from "./notices.js";

/**
 * Read who has conditions; a map does not wait for its signs.
 *
 * @returns {{hasSigns: boolean, signed: (look: object, tree: object) => object, failure: object}} Whether there are any; adds
 *   the sign of a tree to its look; what is shown where they cannot be read.
 */
export function useSigns() {
  const { value, error } = useAnswer((api, signal) => endpoints.conditioned(api, signal), []);
  const byTree = useMemo(() => {
    const found = new Conditions();
    found.take(value ?? []);
    return found.byTree();
  }, [value]);
  return {
    hasSigns: byTree.size > 0,
    signed: (look, { uuid }) => ({ ...look, sign: byTree.get(uuid)?.words }),
    failure: error && html`<${Failure} error=${error} what="The conditions" />`,
  };
}
