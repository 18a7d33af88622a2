// SPDX-License-Identifier: Apache-2.0
/** Groups the trees of the map by aggregates of their roots. */

import { aggregateName, counted } from "../model/numbers.js";
import { html } from "./html.js";
import { Select } from "./layout.js";

export const EACH = "aggregates";
const MOST_NAMES = 2;
const BY_NAME = new Intl.Collator("en", { numeric: true });

/** The choice of a grouping: none, every aggregate, or one. */
export function Grouping({ by, trees, cloud, onChoose }) {
  const { names } = cloud;
  const known = [...membersOf(trees, cloud)].map(([uuid, members]) =>
    [uuid, `${aggregateName(names, uuid)} (${counted(members.length, "tree")})`]);
  const isKnown = !by || by === EACH || known.some(([uuid]) => uuid === by);
  return html`<label>Group by <${Select} value=${by} onChoose=${onChoose} options=${[
    ["", "nothing"], [EACH, "every aggregate"],
    ...isKnown ? [] : [[by, aggregateName(names, by)]], ...known,
  ]} /></label>`;
}

/** The trees in each aggregate. */
function membersOf(trees, cloud) {
  const pairs = trees.flatMap((tree) =>
    cloud.aggregatesOf(tree.uuid).map((aggregate) => ({ aggregate, tree })));
  return new Map([...Map.groupBy(pairs, ({ aggregate }) => aggregate)]
    .map(([aggregate, members]) => [aggregate, members.map(({ tree }) => tree)]));
}

/**
 * Group trees.
 *
 * @param {string} by Nothing, EACH, or the uuid of an aggregate.
 * @param {Cloud} cloud Its aggregates may be known; a tree in several is in several groups.
 * @returns {{title: string, place: string, domain: string, trees: object[]}[]} Groups: the headline
 *   of each, words for the place of its trees, and the uuid of the aggregate.
 */
export function grouped(trees, by, cloud) {
  const { providers, names } = cloud;
  if (!by || !providers.aggregates) return [{ title: "", place: "", trees }];
  const isWanted = (uuid) => by === EACH || uuid === by;
  const groups = [...membersOf(trees, cloud)].filter(([uuid]) => isWanted(uuid))
    .map(([uuid, members]) => ({
      domain: uuid, title: titleOf(uuid, members, names), trees: members,
      place: `, in aggregate ${aggregateName(names, uuid)}`,
    }));
  groups.sort((one, other) => other.trees.length - one.trees.length
    || BY_NAME.compare(one.trees[0].name, other.trees[0].name));
  const others = trees.filter(({ uuid }) => !cloud.aggregatesOf(uuid).some(isWanted));
  if (others.length) {
    const title = `In no such aggregate: ${counted(others.length, "tree")}`;
    groups.push({ title, place: ", in no such aggregate", trees: others });
  }
  return groups;
}

/** An aggregate may have no name, so its title has the names of some members. */
function titleOf(uuid, members, names) {
  const some = members.slice(0, MOST_NAMES).map(({ name }) => name).join(", ");
  const more = members.length > MOST_NAMES ? " …" : "";
  const number = counted(members.length, "tree");
  return `Aggregate ${aggregateName(names, uuid)}: ${number} (${some}${more})`;
}
