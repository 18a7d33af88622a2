// SPDX-License-Identifier: Apache-2.0
/** Groups the trees of the map by aggregates of their roots. */

import { aggregateName } from "../model/numbers.js";
import { countedTrees } from "../model/trees.js";
import { html, useAnswer } from "./html.js";

export const EACH = "aggregates";
const MOST_NAMES = 2;
const BY_NAME = new Intl.Collator("en", { numeric: true });

/** The choice of a grouping: none, every aggregate, or one. */
export function Grouping({ by, trees, aggregatesOf, names, onChoose }) {
  const known = aggregatesOf ? [...membersOf(trees, aggregatesOf)] : [];
  return html`<label>Group by <select value=${by} onChange=${(event) => onChoose(event.target.value)}>
    <option value="">nothing</option>
    <option value=${EACH}>every aggregate</option>
    ${by && by !== EACH && !known.some(([uuid]) => uuid === by) && html`<option value=${by}>${aggregateName(names, by)}</option>`}
    ${known.map(([uuid, members]) => html`<option key=${uuid} value=${uuid} title=${uuid}>${aggregateName(names, uuid)} (${countedTrees(members)})</option>`)}
  </select></label>`;
}

/** Read which aggregates the roots are in, once somebody wants to know. */
export function useAggregates(by, cloud) {
  return useAnswer(async (api) => by && cloud.group(api), [Boolean(by), cloud]);
}

function membersOf(trees, aggregatesOf) {
  const found = new Map();
  for (const tree of trees) {
    for (const uuid of aggregatesOf.get(tree.uuid) ?? []) {
      if (!found.has(uuid)) found.set(uuid, []);
      found.get(uuid).push(tree);
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
 * @param {Map<string, string>} names Of aggregates.
 * @returns {{title: string, place: string, domain: string, trees: object[]}[]} Groups, with the uuid of the aggregate. A tree in several aggregates is in several groups.
 */
export function grouped(trees, by, aggregatesOf, names) {
  if (!by || !aggregatesOf) return [{ title: "", place: "", trees }];
  const isWanted = (uuid) => by === EACH || uuid === by;
  const others = trees.filter(({ uuid }) => !aggregatesOf.get(uuid)?.some(isWanted));
  const groups = [...membersOf(trees, aggregatesOf)].filter(([uuid]) => isWanted(uuid))
    .map(([uuid, members]) => ({ domain: uuid, title: titleOf(uuid, members, names), place: `, in aggregate ${aggregateName(names, uuid)}`, trees: members }));
  groups.sort((one, other) => other.trees.length - one.trees.length || BY_NAME.compare(one.trees[0].name, other.trees[0].name));
  if (others.length) {
    groups.push({ title: `In no such aggregate: ${countedTrees(others)}`, place: ", in no such aggregate", trees: others });
  }
  return groups;
}

/** An aggregate may have no name; those of some members tell which one it is. */
function titleOf(uuid, members, names) {
  const some = members.slice(0, MOST_NAMES).map(({ name }) => name).join(", ");
  const more = members.length > MOST_NAMES ? " …" : "";
  return `Aggregate ${aggregateName(names, uuid)}: ${countedTrees(members)} (${some}${more})`;
}
