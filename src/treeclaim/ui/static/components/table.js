// SPDX-License-Identifier: Apache-2.0
/** Tables: they scroll sideways, show their first rows, and may be sorted. */

import { html, useMemo, useState } from "./html.js";
import { More } from "./layout.js";

const { compare } = new Intl.Collator("en", { numeric: true });

/**
 * A table.
 *
 * @param {string} label What it contains.
 * @param {string} name Its class.
 * @param {object[]} columns With `title`, `cell` (a function of row and index), and perhaps `kind`
 *   (a class), `isHead` (names the row), `sortBy` (a function of the row: a text or a number).
 * @param {object[]} rows
 * @param {(row: object) => string} keyOf The key of a row; without it, rows have their place.
 * @param {(shown: number) => string} caption Of the number of rows that are shown.
 * @param {number} atOnce Rows shown at first; four times as many follow with each step.
 * @param {{column: string, isUp: boolean}} order The title of the column to sort by at first.
 */
export function Table({
  label, name = "", columns, rows, keyOf = null, caption = null, atOnce = Infinity, order = null,
}) {
  const [shown, setShown] = useState(atOnce);
  const [{ column, isUp }, setOrder] = useState(order ?? {});
  const sorted = useMemo(() => inOrder(rows, columns, column, isUp), [rows, columns, column, isUp]);
  const turn = ({ title, isHead }) => setOrder(
    { column: title, isUp: title === column ? !isUp : Boolean(isHead) });
  const sort = isUp ? "ascending" : "descending";
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${label}>
    <table class=${name}>
      ${caption && html`<caption>${caption(Math.min(shown, rows.length))}</caption>`}
      <thead><tr>${columns.map((each, at) => html`<th key=${at} scope="col" class=${each.kind}
        aria-sort=${each.sortBy && each.title === column ? sort : null}>${each.sortBy
          ? html`<button type="button" onClick=${() => turn(each)}>${each.title}</button>`
          : each.title}</th>`)}</tr></thead>
      <tbody>${sorted.slice(0, shown).map((row, index) => html`<tr key=${keyOf?.(row) ?? index}>
        ${columns.map(({ kind, isHead, cell }, at) => (isHead
          ? html`<th key=${at} scope="row" class=${kind}>${cell(row, index)}</th>`
          : html`<td key=${at} class=${kind}>${cell(row, index)}</td>`))}</tr>`)}</tbody>
    </table>
    <${More} shown=${shown} count=${rows.length} step=${4 * atOnce} onMore=${setShown} />
  </div>`;
}

/** Sort rows by a column; the column that names the row decides between equal rows. */
function inOrder(rows, columns, title, isUp) {
  const column = columns.find((each) => each.title === title);
  if (!column) return rows;
  const head = columns.find(({ isHead }) => isHead);
  const by = ({ sortBy }, one, other) => {
    const [first, second] = [sortBy(one), sortBy(other)];
    if (typeof first === "string") return compare(first, second);
    return first === second ? 0 : first - second;
  };
  return rows.toSorted((one, other) =>
    (isUp ? 1 : -1) * by(column, one, other) || by(head, one, other));
}
