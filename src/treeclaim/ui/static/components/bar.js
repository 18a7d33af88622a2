// SPDX-License-Identifier: Apache-2.0
/** One inventory, or the total of many, as a bar: reserved, used, held, wanted, free. */

import { count, percent } from "../model/numbers.js";
import { loadOf } from "../model/totals.js";
import { html } from "./html.js";

/**
 * @param {object} total `total`, `reserved`, `capacity`, `used`, and perhaps `held`, part of that, and `ratio`.
 * @param {number} wanted What a candidate would take.
 */
export function Bar({ total, wanted = 0 }) {
  const reserved = total.total > 0 ? Math.min(1, total.reserved / total.total) : 0;
  const rest = 1 - reserved;
  const share = (amount) => (total.capacity > 0 ? Math.min(1, amount / total.capacity) : amount > 0 ? 1 : 0);
  const used = share(total.used);
  const held = total.used > 0 ? used * Math.min(1, (total.held ?? 0) / total.used) : 0;
  const more = Math.min(1 - used, share(wanted));
  const isOver = total.used > total.capacity;
  const width = (part) => ({ width: `${(100 * part).toFixed(3)}%` });
  return html`<span class=${`bar${isOver ? " over" : ""}`} aria-hidden="true">
    <span class="used" style=${width((used - held) * rest)}></span>
    ${held > 0 && html`<span class="held" style=${width(held * rest)}></span>`}
    ${wanted > 0 && html`<span class="wanted" style=${width(more * rest)}></span>`}
    <span class="free"></span>
    ${reserved > 0 && html`<span class="reserved" style=${width(reserved)}></span>`}
  </span>`;
}

/** Says the same in words. */
export function words(total, wanted = 0) {
  const load = loadOf(total);
  const parts = [`${count(total.used)} of ${count(total.capacity)} used`];
  if (load !== null) parts[0] += ` (${percent(load)})`;
  if (total.held) parts.push(`${count(total.held)} of that held`);
  if (wanted) parts.push(`${count(wanted)} wanted`);
  if (total.reserved) parts.push(`${count(total.reserved)} reserved`);
  if (total.ratio !== undefined && total.ratio !== 1) parts.push(`ratio ${total.ratio}`);
  if (total.used > total.capacity) parts.push(`over by ${count(total.used - total.capacity)}`);
  return parts.join(" · ");
}

export const BarLegend = ({ hasWanted = false }) => html`<ul class="legend bars" aria-label="Colours of the bars">
  <li><span class="swatch used"></span>used</li>
  <li><span class="swatch held"></span>held</li>
  ${hasWanted && html`<li><span class="swatch wanted"></span>this candidate</li>`}
  <li><span class="swatch free"></span>free</li>
  <li><span class="swatch reserved"></span>reserved</li>
</ul>`;
