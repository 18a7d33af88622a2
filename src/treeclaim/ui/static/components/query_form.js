// SPDX-License-Identifier: Apache-2.0
/** The form for a query: groups, and conditions for all groups. */

import { PARAMETERS } from "../model/parameters.js";
import { PLACES, TraitRule, WHOLE, freeSuffix, newGroup } from "../model/query.js";
import { own } from "../model/texts.js";
import { html } from "./html.js";
import { Adder, Remove, Select } from "./layout.js";

const choicesOf = (name) => own(PARAMETERS, name)?.choices;

export const replaced = (list, index, item) =>
  list.map((old, place) => (place === index ? item : old));
export const without = (list, index) => list.filter((_, place) => place !== index);

const optionsOf = (words) => words.map((word) => [word]);

/**
 * The kinds of rows of a group: in each row, a member of `first` (an amount, or one of `choices`)
 * stands before a member `second`; `blank` is a new row.
 */
const ROWS = [
  {
    name: "resources", adder: "+ class", blank: { name: "", amount: "1" }, noun: "class",
    first: "amount", firstLabel: "Amount", second: "name", label: "Resource class",
    attributes: { list: "classes", placeholder: "resource class" },
    read: (text) => text.toUpperCase(),
  },
  {
    name: "traits", adder: "+ trait", blank: { rule: TraitRule.REQUIRED, name: "" }, noun: "trait",
    first: "rule", firstLabel: "Rule of trait", choices: optionsOf(Object.values(TraitRule)),
    second: "name", label: "Trait", attributes: { list: "traits", placeholder: "trait" },
  },
  {
    name: "places", adder: "+ place", blank: { kind: "member_of", value: "" }, noun: "place",
    first: "kind", firstLabel: "Place", choices: optionsOf(PLACES),
    second: "value", label: "Uuids", attributes: { placeholder: "uuid, or in:uuid,uuid" },
  },
];

/**
 * @param {object} request As `readQuery` returns it.
 * @param {{traits: string[], classes: string[]}} names For completion.
 * @param {(request: object) => void} onChange Called with the new request.
 */
export function QueryForm({ request, names, onChange }) {
  const { groups, whole } = request;
  const change = (member, list) => onChange({ ...request, [member]: list });
  const blank = () => ({ ...newGroup(freeSuffix(groups)), resources: [ROWS[0].blank] });
  const addable = WHOLE.filter((name) =>
    PARAMETERS[name].again || !whole.some(([used]) => used === name));
  return html`<div class="query-form">
    ${Object.entries(names).map(([list, words]) => html`<datalist key=${list} id=${list}>
      ${words.map((word) => html`<option key=${word} value=${word}></option>`)}</datalist>`)}
    <div class="groups">
      ${groups.map((group, index) => html`<${GroupForm} key=${index} group=${group}
        number=${index + 1} onChange=${(next) => change("groups", replaced(groups, index, next))}
        onRemove=${() => change("groups", without(groups, index))} />`)}
      <button type="button" class="add-group"
        onClick=${() => change("groups", [...groups, blank()])}>Add a group</button>
    </div>
    <fieldset class="whole"><legend>For all groups</legend>
      ${["whole", "others"].flatMap((member) => request[member].map(([name, value], index) => html`
        <${WholeField} key=${`${member} ${index}`} name=${name} value=${value}
          onChange=${(next) => change(member, replaced(request[member], index, [name, next]))}
          onRemove=${() => change(member, without(request[member], index))} />`))}
      <${Adder} label="Add a condition for all groups" title="Add a condition"
        options=${addable.map((name) => [name, name])}
        onAdd=${(name) => change("whole", [...whole, [name, choicesOf(name)?.[0] ?? ""]])} />
    </fieldset>
  </div>`;
}

function WholeField({ name, value, onChange, onRemove }) {
  const choices = choicesOf(name);
  return html`<div class="field">
    <label><span class="mono">${name}</span>${choices
      ? html`<${Select} value=${value} options=${optionsOf(choices)} onChoose=${onChange} />`
      : html`<input value=${value} placeholder=${own(PARAMETERS, name)?.help ?? ""}
          spellcheck=${false} onInput=${(event) => onChange(event.target.value)} />`}
    </label><${Remove} what=${name} onRemove=${onRemove} /></div>`;
}

function GroupForm({ group, number, onChange, onRemove }) {
  const title = group.suffix ? `Group ${group.suffix}` : "Unsuffixed group";
  const suffix = (event) => onChange({ ...group, suffix: event.target.value.trim() });
  return html`<fieldset class="group"><legend>${title}</legend>
    <div class="field"><label>Suffix <input class="suffix" value=${group.suffix}
      spellcheck=${false} placeholder="optional" onInput=${suffix} /></label>
      <${Remove} what=${`group ${number}`} onRemove=${onRemove} /></div>
    ${ROWS.map((kind) => group[kind.name].map((row, index) => {
      const change = (list) => onChange({ ...group, [kind.name]: list });
      return html`<${Row} key=${`${kind.name} ${index}`} kind=${kind} row=${row}
        place=${`${index + 1} of ${title}`}
        onRemove=${() => change(without(group[kind.name], index))}
        onChange=${(more) => change(replaced(group[kind.name], index, { ...row, ...more }))} />`;
    }))}
    <div class="adders">${ROWS.map(({ name, adder, blank }) => html`
      <button key=${name} type="button" onClick=${() =>
        onChange({ ...group, [name]: [...group[name], blank] })}>${adder}</button>`)}</div>
  </fieldset>`;
}

function Row({ kind, row, place, onChange, onRemove }) {
  const { first, firstLabel, choices, second, label, attributes, noun } = kind;
  const set = (member) => (value) => onChange({ [member]: value });
  const isList = row.rule === TraitRule.ANY;
  return html`<div class="field">
    ${choices
      ? html`<${Select} aria-label=${`${firstLabel} ${place}`} options=${choices}
          value=${row[first]} onChoose=${set(first)} />`
      : html`<input class="amount-field" type="number" min="1" value=${row[first]}
          aria-label=${`${firstLabel} ${place}`}
          onInput=${(event) => set(first)(event.target.value)} />`}
    <input aria-label=${`${label} ${place}`} spellcheck=${false} value=${row[second]}
      title=${row[second]} ...${attributes} ...${isList && { placeholder: "A,B,…" }}
      onInput=${({ target: { value } }) => set(second)(kind.read?.(value) ?? value)} />
    <${Remove} what=${row[second] || `this ${noun}`} onRemove=${onRemove} /></div>`;
}
