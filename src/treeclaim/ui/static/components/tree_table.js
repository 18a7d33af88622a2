// SPDX-License-Identifier: Apache-2.0
/** Trees as a table: what the map shows, for who cannot see it, and to sort. */

import { count, percent } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { byImportance, loadOf, loadOfTree } from "../model/totals.js";
import { countedTrees } from "../model/trees.js";
import { treeAddress } from "../routes.js";
import { Bar } from "./bar.js";
import { html, useMemo, useState } from "./html.js";

const AT_ONCE = 50;
/* Rows shown; more on demand, so that the page stays quick. */

const MOST_CLASSES = 6;
const MOST_KEYS = 4;
/* Of a tree's conditions, in its row; all are in the title. */

/**
 * @param {object[]} trees With `name`, `uuid`, `totals`.
 * @param {string} wanted The class that loads are of, or DOMINANT.
 * @param {Map<string, {keys: string[], words: string}>} conditions Of the trees that have some, by the root's uuid.
 */
export function TreeTable({ trees, wanted, conditions = NO_CONDITIONS }) {
  const [shown, setShown] = useState(AT_ONCE);
  const [order, setOrder] = useState({ by: "load", isUp: false });
  const classes = useMemo(() => classesOf(trees), [trees]);
  const rows = useMemo(() => ordered(trees, wanted, order), [trees, wanted, order]);
  const turn = (by) => setOrder((before) => ({ by, isUp: before.by === by ? !before.isUp : by === "name" }));
  const head = (by, title, kind = "") => html`<th scope="col" class=${kind}
    aria-sort=${order.by === by ? (order.isUp ? "ascending" : "descending") : null}>
    <button type="button" onClick=${() => turn(by)}>${title}</button></th>`;
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Table of trees">
    <table class="trees">
      <caption>${countedTrees(trees)}; ${count(Math.min(shown, rows.length))} shown</caption>
      <thead><tr>${head("name", "Tree")}${head("load", "Load", "number")}
        ${classes.map((name) => html`<${Head} key=${name} head=${head} name=${name} />`)}</tr></thead>
      <tbody>${rows.slice(0, shown).map((row) => html`<${Row} key=${row.tree.uuid} row=${row} classes=${classes} conditions=${conditions.get(row.tree.uuid)} />`)}</tbody>
    </table>
    ${shown < rows.length && html`<button type="button" onClick=${() => setShown(shown + 4 * AT_ONCE)}>
      Show ${count(Math.min(4 * AT_ONCE, rows.length - shown))} more</button>`}
  </div>`;
}

const Head = ({ head, name }) => head(name, name, "measure");

const NO_CONDITIONS = new Map();

const shortList = (keys) => (keys.length > MOST_KEYS ? [...keys.slice(0, MOST_KEYS), `and ${keys.length - MOST_KEYS} more`] : keys);

function Row({ row: { tree, load }, classes, conditions }) {
  return html`<tr>
    <th scope="row"><a href=${treeAddress(tree.uuid)}>${tree.name}</a>
      ${conditions && html`<span class="signed" title=${conditions.words}><span class="sign" aria-hidden="true"></span>
        <span class="keys" aria-hidden="true">${shortList(conditions.keys).map((key) => html`<span key=${key}>${key}</span>`)}</span><span class="sr">Conditions: ${conditions.words}</span></span>`}</th>
    <td class="number">${load.load === null ? "–" : percent(load.load)}<span class="of"> ${load.name}</span></td>
    ${classes.map((name) => {
      const total = own(tree.totals, name);
      return html`<td key=${name} class="measure">${total
        ? html`<${Bar} total=${total} /><span class="amount">${count(total.used)} / ${count(total.capacity)}</span>` : "–"}</td>`;
    })}
  </tr>`;
}

function classesOf(trees) {
  const found = new Map();
  for (const { totals } of trees) {
    for (const name of Object.keys(totals)) found.set(name, (found.get(name) ?? 0) + 1);
  }
  return [...found].sort((one, other) => other[1] - one[1]).slice(0, MOST_CLASSES)
    .map(([name]) => name).sort(byImportance);
}

const KEYS = new Map([
  ["name", ({ tree }) => tree.name],
  ["load", ({ load }) => load.load ?? -1],
]);

function ordered(trees, wanted, { by, isUp }) {
  const rows = trees.map((tree) => ({ tree, load: loadOfTree(tree.totals, wanted) }));
  const key = KEYS.get(by) ?? (({ tree }) => loadOf(own(tree.totals, by)) ?? -1);
  const sign = isUp ? 1 : -1;
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  return rows.sort((one, other) => {
    const [first, second] = [key(one), key(other)];
    const difference = typeof first === "string" ? compare(first, second) : (first === second ? 0 : first - second);
    return sign * difference || compare(one.tree.name, other.tree.name);
  });
}
