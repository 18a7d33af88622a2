// SPDX-License-Identifier: Apache-2.0
/** Trees as a table: what the map shows, for who cannot see it, and to sort. */

import { count, counted, percent } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { byImportance, loadOf, loadOfTree } from "../model/totals.js";
import { treeAddress } from "../routes.js";
import { Bar } from "./bar.js";
import { html, useMemo } from "./html.js";
import { Table } from "./table.js";

const MOST_CLASSES = 6;
const MOST_KEYS = 4;
/* Conditions of a tree in its row; all are in the title. */

/**
 * @param {object[]} trees With `name`, `uuid`, `totals`.
 * @param {string} wanted The class that loads are of, or DOMINANT.
 * @param {Map<string, {keys: string[], words: string}>} conditions Of trees that have conditions,
 *   by the root's uuid.
 */
export function TreeTable({ trees, wanted, conditions }) {
  const rows = useMemo(() => trees.map((tree) =>
    ({ ...tree, load: loadOfTree(tree.totals, wanted) })), [trees, wanted]);
  const columns = useMemo(() => [
    { title: "Tree", isHead: true, sortBy: ({ name }) => name, cell: ({ uuid, name }) => html`
      <a href=${treeAddress(uuid)}>${name}</a>
      ${conditions.has(uuid) && html`<${Sign} ...${conditions.get(uuid)} />`}` },
    { title: "Load", kind: "number", sortBy: ({ load }) => load.load ?? -1,
      cell: ({ load }) => html`${load.load === null ? "–" : percent(load.load)}
        <span class="of"> ${load.name}</span>` },
    ...classesOf(trees).map((title) => ({
      title, kind: "measure", sortBy: ({ totals }) => loadOf(own(totals, title)) ?? -1,
      cell: ({ totals }) => html`<${Measure} total=${own(totals, title)} />`,
    })),
  ], [trees, conditions]);
  return html`<${Table} label="Table of trees" name="trees" columns=${columns} rows=${rows}
    keyOf=${({ uuid }) => uuid} atOnce=${50} order=${{ column: "Load", isUp: false }}
    caption=${(shown) => `${counted(trees.length, "tree")}; ${count(shown)} shown`} />`;
}

const Measure = ({ total }) => (total ? html`<${Bar} total=${total} />
  <span class="amount">${count(total.used)} / ${count(total.capacity)}</span>` : "–");

function Sign({ keys, words }) {
  const more = keys.length - MOST_KEYS;
  return html`<span class="signed" title=${words}><span class="sign" aria-hidden="true"></span>
    <span class="keys" aria-hidden="true">
      ${keys.slice(0, MOST_KEYS).map((key) => html`<span key=${key}>${key}</span>`)}
      ${more > 0 && html`<span>and ${more} more</span>`}</span>
    <span class="sr">Conditions: ${words}</span></span>`;
}

/** The classes that most trees have, in their order. */
function classesOf(trees) {
  const names = Map.groupBy(trees.flatMap(({ totals }) => Object.keys(totals)), (name) => name);
  return [...names].sort(([, one], [, other]) => other.length - one.length)
    .slice(0, MOST_CLASSES).map(([name]) => name).sort(byImportance);
}
