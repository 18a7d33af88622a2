// SPDX-License-Identifier: Apache-2.0
/** The switch between things as they are and as they would be, and what the latter takes for granted. */

import { KINDS, filled, listed, newRow } from "../model/as_if.js";
import { count, counted, shortened } from "../model/numbers.js";
import { html } from "./html.js";
import { Remove, replaced, without } from "./query_form.js";

/**
 * @param {{isOn: boolean, rows: object[]}} asIf What is chosen, rows as `splitAsIf` gives them.
 * @param {(asIf: object, isSwitched: boolean) => void} onChange Called with what is chosen then, and whether the switch was used.
 */
export function AsIf({ asIf, onChange }) {
  const { isOn, rows } = asIf;
  const setRow = (index, more) => onChange({ isOn, rows: replaced(rows, index, { ...rows[index], ...more }) }, false);
  return html`<div class="as-if">
    <div class="switch" role="group" aria-label="Cloud">
      ${[[false, "Current cloud"], [true, "What if …"]].map(([value, title]) => html`<button key=${title} type="button" aria-pressed=${isOn === value}
        onClick=${() => onChange({ isOn: value, rows }, true)}>${title}</button>`)}</div>
    ${isOn && html`<fieldset class="whole"><legend>Assumptions</legend>
      ${rows.map(({ kind, amount, text }, index) => html`<div class="field" key=${index}>
        ${KINDS[kind].hasAmount && html`<input class="amount-field" type="number" min="1" aria-label=${`How many: ${KINDS[kind].title}`} value=${amount}
          onInput=${(event) => setRow(index, { amount: event.target.value })} />`}
        <label><span>${KINDS[kind].title}</span><input value=${text} placeholder=${KINDS[kind].hint} title=${text} spellcheck=${false}
          onInput=${(event) => setRow(index, { text: event.target.value })} /></label>
        <${Remove} what=${KINDS[kind].title} onRemove=${() => onChange({ isOn, rows: without(rows, index) }, false)} /></div>`)}
      <select class="adder" aria-label="Add an assumption" value=""
        onChange=${(event) => { onChange({ isOn, rows: [...rows, newRow(event.target.value)] }, false); event.target.value = ""; }}>
        <option value="">Add an assumption …</option>
        ${Object.entries(KINDS).map(([kind, { title }]) => html`<option key=${kind} value=${kind}>${title}</option>`)}
      </select>
    </fieldset>`}
  </div>`;
}

/**
 * Says what an answer took for granted, and how many of those to be placed first were.
 *
 * @param {object[]} rows What was given.
 * @param {number[]} placed Of the answer's member `given`.
 */
export function Taken({ rows, placed = [] }) {
  const all = filled(rows);
  const toPlace = all.filter(({ kind }) => kind === "place");
  return html`<ul class="taken-for-granted" aria-label="Assumptions">
    ${all.map((row, index) => html`<li key=${index}>${words(row, placed[toPlace.indexOf(row)])}</li>`)}
  </ul>`;
}

function words({ kind, amount, text }, placed) {
  if (kind === "release") return html`${counted(listed(text).length, "consumer")} released`;
  if (kind === "without") return html`Without <strong>${shortened(text.trim())}</strong>`;
  if (kind === "more") return html`<strong>${count(Number(amount))}</strong> more hosts like <strong>${shortened(text.trim())}</strong>`;
  const isAll = placed >= Number(amount);
  return html`<strong class=${isAll ? "" : "bad"}>${placed === undefined ? count(Number(amount)) : `${count(placed)} of ${count(Number(amount))}`}</strong>
    ${" "}placed: <code>${text.trim()}</code>`;
}
