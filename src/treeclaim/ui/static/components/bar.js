// SPDX-License-Identifier: Apache-2.0
/** One inventory, or the total of many, as a bar: reserved, used, held, wanted, free. */

import { count, percent } from "../model/numbers.js";
import { loadOf } from "../model/totals.js";
import { html } from "./html.js";

/**
 * @param {object} total `total`, `reserved`, `capacity`, `used`, and perhaps `held`, part of that.
 * @param {number} wanted What a candidate would take.
 */
export function Bar({ total, wanted = 0 }) {
  const reserved = total.total > 0 ? Math.min(1, total.reserved / total.total) : 0;
  const share = (amount) =>
    (total.capacity > 0 ? Math.min(1, amount / total.capacity) : Number(amount > 0));
  const used = share(total.used);
  const held = total.used > 0 ? used * Math.min(1, (total.held ?? 0) / total.used) : 0;
  const part = (name, width) => width > 0 && html`
    <span class=${name} style=${{ width: `${(100 * width).toFixed(3)}%` }}></span>`;
  const rest = 1 - reserved;
  return html`
    <span class=${`bar${total.used > total.capacity ? " over" : ""}`} aria-hidden="true">
      ${part("used", (used - held) * rest)}${part("held", held * rest)}
      ${part("wanted", Math.min(1 - used, share(wanted)) * rest)}
      <span class="free"></span>${part("reserved", reserved)}
    </span>`;
}

/** Return the same in words. */
export function words(total) {
  const { used, capacity, held, reserved, ratio = 1 } = total;
  const load = loadOf(total);
  return [
    `${count(used)} of ${count(capacity)} used${load === null ? "" : ` (${percent(load)})`}`,
    held && `${count(held)} of that held`,
    reserved && `${count(reserved)} reserved`,
    ratio !== 1 && `ratio ${ratio}`,
    used > capacity && `over by ${count(used - capacity)}`,
  ].filter(Boolean).join(" · ");
}
