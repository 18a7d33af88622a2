// SPDX-License-Identifier: Apache-2.0
/** Forms with assumptions, and what an answer assumed. */

import { KINDS, filled, listed, newRow, splitAsIf, withAsIf } from "../model/as_if.js";
import { count, counted, shortened } from "../model/numbers.js";
import { address } from "../routes.js";
import { html, useState } from "./html.js";
import { Adder, Remove, Switch } from "./layout.js";
import { replaced, without } from "./query_form.js";

/** Read the parameters of an address, and its assumptions. */
export function choiceOf(route) {
  const { query, rows } = splitAsIf(route.query);
  return { choice: Object.fromEntries(new URLSearchParams(query)), rows };
}

/** The choice of a switch with the rows of an address. */
export const asIfOf = (query) => {
  const { rows } = splitAsIf(query);
  return { isOn: rows.length > 0, rows };
};

/** The rows that a choice assumes. */
export const assumed = ({ isOn, rows }) => (isOn ? rows : []);

/** The fields of a form that are filled in, by name. */
export const fieldsOf = (form) => Object.fromEntries([...new FormData(form)]
  .map(([name, value]) => [name, value.trim()]).filter(([, value]) => value));

/**
 * A form for the parameters of the address, with a switch for assumptions.
 *
 * @param {string} page The page of the form.
 * @param {object[]} rows Assumptions in the address.
 * @param {string} verb The text of the button.
 * @param {() => void} onAgain Called if the address has these parameters already.
 */
export function AddressForm({ page, rows, verb, onAgain, children }) {
  const [asIf, setAsIf] = useState({ isOn: rows.length > 0, rows });
  const submit = (event) => {
    event.preventDefault();
    // Fields of assumptions have no name.
    const next = address(page, "", withAsIf(fieldsOf(event.target), assumed(asIf)));
    if (next === location.hash) onAgain();
    else location.hash = next;
  };
  return html`<form class="panel ask" onSubmit=${submit}>
    <div class="controls fields">${children}</div>
    <${AsIf} asIf=${asIf} onChange=${setAsIf} />
    <div class="controls"><button type="submit" class="primary">${verb}</button></div>
  </form>`;
}

/**
 * The switch between the current cloud and assumptions, and their rows.
 *
 * @param {{isOn: boolean, rows: object[]}} asIf The choice, rows as `splitAsIf` returns them.
 * @param {(asIf: object, isSwitched: boolean) => void} onChange Called with the new choice, and
 *   whether the switch was used.
 */
export function AsIf({ asIf: { isOn, rows }, onChange }) {
  const setRows = (next) => onChange({ isOn, rows: next }, false);
  return html`<div class="as-if">
    <${Switch} label="Cloud" value=${isOn}
      options=${[[false, "Current cloud"], [true, "What if …"]]}
      onChoose=${(value) => onChange({ isOn: value, rows }, true)} />
    ${isOn && html`<fieldset class="whole"><legend>Assumptions</legend>
      ${rows.map((row, index) => html`<${Row} key=${index} row=${row}
        onChange=${(more) => setRows(replaced(rows, index, { ...row, ...more }))}
        onRemove=${() => setRows(without(rows, index))} />`)}
      <${Adder} label="Add an assumption" title="Add an assumption"
        options=${Object.entries(KINDS).map(([kind, { title }]) => [kind, title])}
        onAdd=${(kind) => setRows([...rows, newRow(kind)])} />
    </fieldset>`}
  </div>`;
}

function Row({ row: { kind, amount, text }, onChange, onRemove }) {
  const { title, hint, hasAmount } = KINDS[kind];
  return html`<div class="field">
    ${hasAmount && html`<input class="amount-field" type="number" min="1" value=${amount}
      aria-label=${`How many: ${title}`}
      onInput=${(event) => onChange({ amount: event.target.value })} />`}
    <label><span>${title}</span><input value=${text} placeholder=${hint} title=${text}
      spellcheck=${false} onInput=${(event) => onChange({ text: event.target.value })} /></label>
    <${Remove} what=${title} onRemove=${onRemove} /></div>`;
}

/**
 * What an answer assumed.
 *
 * @param {object[]} rows The assumptions; nothing is shown without any.
 * @param {number[]} placed The numbers of those placed first, as the answer's `given` has them.
 */
export function Assumptions({ rows, placed = [] }) {
  const all = filled(rows);
  const toPlace = all.filter(({ kind }) => kind === "place");
  return all.length > 0 && html`<ul class="taken-for-granted" aria-label="Assumptions">
    ${all.map((row, index) => html`
      <li key=${index}>${words(row, placed[toPlace.indexOf(row)])}</li>`)}
  </ul>`;
}

function words({ kind, amount, text }, placed) {
  const all = count(Number(amount));
  const host = html`<strong>${shortened(text.trim())}</strong>`;
  if (kind === "release") return html`${counted(listed(text).length, "consumer")} released`;
  if (kind === "without") return html`Without ${host}`;
  if (kind === "more") return html`<strong>${all}</strong> more hosts like ${host}`;
  return html`<strong class=${placed >= Number(amount) ? "" : "bad"}>
    ${placed === undefined ? all : `${count(placed)} of ${all}`}</strong>
    ${" "}placed: <code>${text.trim()}</code>`;
}
