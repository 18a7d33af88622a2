// SPDX-License-Identifier: Apache-2.0
/** The signs of trees with conditions, for maps that are not kept current. */

import * as endpoints from "../api/endpoints.js";
import { Conditions } from "../model/conditions.js";
import { html, useAnswer, useMemo } from "./html.js";
import { Failure } from "./notices.js";

/**
 * Read who has conditions; a map does not wait for its signs.
 *
 * @returns {{hasSigns: boolean, withSign: (look: object, tree: object) => object, failure: any}}
 *   Whether there are any; a function that adds the sign of a tree to its look; what is shown if
 *   they cannot be read.
 */
export function useSigns() {
  const { value, error } = useAnswer(endpoints.conditioned, []);
  const byTree = useMemo(() => new Conditions(value ?? []).byTree(), [value]);
  return {
    hasSigns: byTree.size > 0,
    withSign: (look, { uuid }) => ({ ...look, sign: byTree.get(uuid)?.words }),
    failure: error && html`<${Failure} error=${error} what="the conditions" />`,
  };
}
