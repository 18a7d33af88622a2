// SPDX-License-Identifier: Apache-2.0
/** The form for a question: groups, and what holds for all of them. */

import { PARAMETERS } from "../model/parameters.js";
import { PLACES, TraitRule, WHOLE, freeSuffix, newGroup } from "../model/query.js";
import { own } from "../model/texts.js";
import { html } from "./html.js";

const choicesOf = (name) => own(PARAMETERS, name)?.choices;
const helpOf = (name) => own(PARAMETERS, name)?.help ?? "";

/**
 * @param {object} request As `readQuery` gives it.
 * @param {{traits: string[], classes: string[]}} names What exists.
 * @param {(request: object) => void} onChange Called with the new request.
 */
export function QueryForm({ request, names, onChange }) {
  const { groups, whole, others } = request;
  const setGroup = (index, group) => onChange({ ...request, groups: replaced(groups, index, group) });
  return html`<div class="query-form">
    <datalist id="classes">${names.classes.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
    <datalist id="traits">${names.traits.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
    <div class="groups">
      ${groups.map((group, index) => html`<${GroupForm} key=${index} group=${group} number=${index + 1}
        onChange=${(changed) => setGroup(index, changed)} onRemove=${() => onChange({ ...request, groups: without(groups, index) })} />`)}
      <button type="button" class="add-group" onClick=${() => onChange({
        ...request, groups: [...groups, { ...newGroup(freeSuffix(groups)), resources: [{ name: "", amount: "1" }] }],
      })}>Add a group</button>
    </div>
    <fieldset class="whole"><legend>For all groups</legend>
      ${whole.map(([name, value], index) => html`<${WholeField} key=${index} name=${name} value=${value}
        onChange=${(next) => onChange({ ...request, whole: replaced(whole, index, [name, next]) })}
        onRemove=${() => onChange({ ...request, whole: without(whole, index) })} />`)}
      ${others.map(([name, value], index) => html`<${WholeField} key=${`other-${index}`} name=${name} value=${value}
        onChange=${(next) => onChange({ ...request, others: replaced(others, index, [name, next]) })}
        onRemove=${() => onChange({ ...request, others: without(others, index) })} />`)}
      <select class="adder" aria-label="Add a condition for all groups" value=""
        onChange=${(event) => { onChange({ ...request, whole: [...whole, [event.target.value, choicesOf(event.target.value)?.[0] ?? ""]] }); event.target.value = ""; }}>
        <option value="">Add a condition …</option>
        ${Object.entries(WHOLE).filter(([name, again]) => again || !whole.some(([used]) => used === name))
          .map(([name]) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </fieldset>
  </div>`;
}

function WholeField({ name, value, onChange, onRemove }) {
  return html`<div class="field">
    <label><span class="mono">${name}</span>
      ${choicesOf(name)
        ? html`<select value=${value} onChange=${(event) => onChange(event.target.value)}>
            ${choicesOf(name).map((choice) => html`<option key=${choice} value=${choice}>${choice}</option>`)}</select>`
        : html`<input value=${value} placeholder=${helpOf(name)} spellcheck=${false} onInput=${(event) => onChange(event.target.value)} />`}
    </label><${Remove} what=${name} onRemove=${onRemove} /></div>`;
}

function GroupForm({ group, number, onChange, onRemove }) {
  const title = group.suffix ? `Group ${group.suffix}` : "Unsuffixed group";
  const rows = (member, index, row) => onChange({ ...group, [member]: replaced(group[member], index, row) });
  const drop = (member, index) => onChange({ ...group, [member]: without(group[member], index) });
  const add = (member, row) => onChange({ ...group, [member]: [...group[member], row] });
  return html`<fieldset class="group"><legend>${title}</legend>
    <div class="field"><label>Suffix <input class="suffix" value=${group.suffix} spellcheck=${false} placeholder="none"
      onInput=${(event) => onChange({ ...group, suffix: event.target.value.trim() })} /></label>
      <${Remove} what=${`group ${number}`} onRemove=${onRemove} /></div>
    ${group.resources.map((row, index) => html`<div class="field" key=${`r${index}`}>
      <input class="amount-field" type="number" min="1" aria-label=${`Amount ${index + 1} of ${title}`} value=${row.amount}
        onInput=${(event) => rows("resources", index, { ...row, amount: event.target.value })} />
      <input list="classes" aria-label=${`Resource class ${index + 1} of ${title}`} placeholder="resource class" spellcheck=${false} value=${row.name}
        onInput=${(event) => rows("resources", index, { ...row, name: event.target.value.toUpperCase() })} />
      <${Remove} what=${row.name || "this class"} onRemove=${() => drop("resources", index)} /></div>`)}
    ${group.traits.map((row, index) => html`<div class="field" key=${`t${index}`}>
      <select aria-label=${`Rule of trait ${index + 1} of ${title}`} value=${row.rule}
        onChange=${(event) => rows("traits", index, { ...row, rule: event.target.value })}>
        ${Object.values(TraitRule).map((rule) => html`<option key=${rule} value=${rule}>${rule}</option>`)}</select>
      <input list="traits" aria-label=${`Trait ${index + 1} of ${title}`} placeholder=${row.rule === TraitRule.ANY ? "A,B,…" : "trait"} spellcheck=${false} value=${row.name} title=${row.name}
        onInput=${(event) => rows("traits", index, { ...row, name: event.target.value })} />
      <${Remove} what=${row.name || "this trait"} onRemove=${() => drop("traits", index)} /></div>`)}
    ${group.places.map((row, index) => html`<div class="field" key=${`p${index}`}>
      <select aria-label=${`Place ${index + 1} of ${title}`} value=${row.kind}
        onChange=${(event) => rows("places", index, { ...row, kind: event.target.value })}>
        ${PLACES.map((kind) => html`<option key=${kind} value=${kind}>${kind}</option>`)}</select>
      <input aria-label=${`Uuids ${index + 1} of ${title}`} placeholder="uuid, or in:uuid,uuid" spellcheck=${false} value=${row.value} title=${row.value}
        onInput=${(event) => rows("places", index, { ...row, value: event.target.value })} />
      <${Remove} what=${row.kind} onRemove=${() => drop("places", index)} /></div>`)}
    <div class="adders">
      <button type="button" onClick=${() => add("resources", { name: "", amount: "1" })}>+ class</button>
      <button type="button" onClick=${() => add("traits", { rule: TraitRule.REQUIRED, name: "" })}>+ trait</button>
      <button type="button" onClick=${() => add("places", { kind: "member_of", value: "" })}>+ place</button>
    </div>
  </fieldset>`;
}

export const Remove = ({ what, onRemove }) => html`<button type="button" class="quiet remove" aria-label=${`Remove ${what}`} onClick=${onRemove}>×</button>`;

export const replaced = (list, index, item) => list.map((old, place) => (place === index ? item : old));
export const without = (list, index) => list.filter((_, place) => place !== index);
