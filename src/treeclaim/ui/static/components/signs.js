// SPDX-License-Identifier: Apache-2.0
/** The conditions of trees, for maps that are not kept current. */

import * as endpoints from "../api/endpoints.js";
import { conditionsByTree } from "../model/conditions.js";
import { html, useAnswer, useMemo } from "./html.js";
import { Failure } from "./notices.js";

/**
 * Read the providers with conditions; a map is drawn before they arrive.
 *
 * @returns {{conditions: Map<string, object>, failure: any}} By the root's uuid, empty until they
 *   are read; what is shown if they cannot be read.
 */
export function useConditions() {
  const { value, error } = useAnswer((api, signal) =>
    endpoints.providers(api, endpoints.including(["conditions"]), signal), []);
  const conditions = useMemo(() => conditionsByTree(value ?? []), [value]);
  return {
    conditions, failure: error && html`<${Failure} error=${error} what="the conditions" />`,
  };
}
