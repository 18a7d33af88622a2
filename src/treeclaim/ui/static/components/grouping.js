// SPDX-License-Identifier: Apache-2.0
/** Groups the trees of the map by aggregates of their roots. */

import * as endpoints from "../api/endpoints.js";
import { counted, shortened } from "../model/numbers.js";
import { html, useAnswer } from "./html.js";

const EACH = "aggregates";
const MOST_NAMES = 2;
const BY_NAME = new Intl.Collator("en", { numeric: true });

/** The choice of a grouping: none, every aggregate, or one. */
export function Grouping({ by, aggregates, onChoose }) {
  const known = aggregates.value ? [...aggregateMembers(aggregates.value)] : [];
  return html`<label>Group by <select value=${by} onChange=${(event) => onChoose(event.target.value)}>
    <option value="">nothing</option>
    <option value=${EACH}>every aggregate</option>
    ${by && by !== EACH && !known.some(([uuid]) => uuid === by) && html`<option value=${by}>${shortened(by)}</option>`}
    ${known.map(([uuid, roots]) => html`<option key=${uuid} value=${uuid}>${shortened(uuid)} (${counted(roots.length, "tree")})</option>`)}
  </select></label>`;
}

/** Read which aggregates the roots are in, once somebody wants to know. */
export function useAggregates(by, trees) {
  return useAnswer(async (api, signal) => (by ? endpoints.aggregatesOfRoots(api, signal) : null), [Boolean(by), trees]);
}

function aggregateMembers(aggregatesOf) {
  const found = new Map();
  for (const [root, aggregates] of aggregatesOf) {
    for (const uuid of aggregates) {
      if (!found.has(uuid)) found.set(uuid, []);
      found.get(uuid).push(root);
    }
  }
  return found;
}

/**
 * Group trees.
 *
 * @param {object[]} trees All of them.
 * @param {string} by Nothing, EACH, or the uuid of an aggregate.
 * @param {Map<string, string[]>|null} aggregatesOf Aggregates by root, once they are known.
 * @returns {{title: string, trees: object[]}[]} A tree in several aggregates is in several groups.
 */
export function grouped(trees, by, aggregatesOf) {
  if (!by || !aggregatesOf) return [{ title: "", trees }];
  const isIn = new Map();
  const others = [];
  for (const tree of trees) {
    const wanted = (aggregatesOf.get(tree.uuid) ?? []).filter((uuid) => by === EACH || uuid === by);
    if (!wanted.length) others.push(tree);
    for (const uuid of wanted) {
      if (!isIn.has(uuid)) isIn.set(uuid, []);
      isIn.get(uuid).push(tree);
    }
  }
  const groups = [...isIn].map(([uuid, members]) => ({ title: titleOf(uuid, members), trees: members }));
  groups.sort((one, other) => other.trees.length - one.trees.length || BY_NAME.compare(one.trees[0].name, other.trees[0].name));
  if (others.length) groups.push({ title: `In no such aggregate: ${counted(others.length, "tree")}`, trees: others });
  return groups;
}

/** Aggregates have no names here; those of some members tell which one it is. */
function titleOf(uuid, members) {
  const names = members.slice(0, MOST_NAMES).map(({ name }) => name).join(", ");
  const more = members.length > MOST_NAMES ? " …" : "";
  return `Aggregate ${shortened(uuid)}: ${counted(members.length, "tree")} (${names}${more})`;
}
