// SPDX-License-Identifier: Apache-2.0
/** A provider and all below it, drawn as boxes within boxes. */

import { conditionWords } from "../model/conditions.js";
import { aggregateName, count, counted } from "../model/numbers.js";
import { LISTED_PARTS } from "../model/parts.js";
import { own } from "../model/texts.js";
import { capacityOf, inClassOrder, totalOf } from "../model/totals.js";
import { shortName } from "../model/trees.js";
import { Bar, words } from "./bar.js";
import { html, useState } from "./html.js";
import { More } from "./layout.js";

const MOST_CHILDREN = 48;
const MOST_TRAITS = 10;
/* Shown at first; a host may have hundreds of devices, and of traits. */

const DEEPEST = 4;
/* Boxes within boxes take width from each other, so the innermost box lists what is below it. */

/**
 * @param {{provider: object, children: object[], omitted: number}} node What to draw.
 * @param {object} marks What is drawn of providers besides their parts, each may be left out:
 *   `wanted`, amounts by class that a candidate takes, by provider; `sought`, traits to mark;
 *   `holders`, the number of consumers by provider; `held`, holds by provider and class;
 *   `names` of aggregates by uuid; `consumption` among the providers; `isBrief`, whether only what
 *   is wanted or sought is drawn.
 * @param {object|null} parent The provider above it.
 * @param {number} level The number of boxes around it.
 */
export function ProviderBox({ node, marks = {}, parent = null, level = 0 }) {
  const { provider, omitted = 0 } = node;
  const { wanted, holders, isBrief = false } = marks;
  const children = level < DEEPEST
    ? node.children.map((child) => ({ node: child, parent: provider, level: level + 1 }))
    : allBelow(node, DEEPEST + 1);
  const [shown, setShown] = useState(MOST_CHILDREN);
  const takes = wanted?.get(provider.uuid);
  return html`<div id=${isBrief ? null : `provider-${provider.uuid}`}
    class=${`provider ${children.length ? "inner" : "leaf"}${takes ? " taken" : ""}`}>
    <div class="provider-head">
      <h3 title=${`${provider.name} ${provider.uuid}`}>
        ${shortName(provider.name, parent?.name)}</h3>
      ${level > DEEPEST + 1 && html`<span class="fine">below ${parent.name}</span>`}
      ${holders?.has(provider.uuid) && html`
        <span class="fine">${counted(holders.get(provider.uuid), "consumer")}</span>`}
    </div>
    <${Chips} label="Conditions" kind="condition" chips=${conditionsOf(provider)} />
    <${Inventories} provider=${provider} takes=${takes} marks=${marks} />
    <${Traits} names=${provider.traits ?? []} sought=${marks.sought} isBrief=${isBrief} />
    ${!isBrief && OTHERS.map(([name, single]) => html`
      <${Part} key=${name} name=${name} single=${single} value=${provider[name]}
        names=${marks.names ?? NOTHING} />`)}
    ${children.length > 0 && html`<div class=${`children${level < DEEPEST ? "" : " listed"}`}>
      ${children.slice(0, shown).map((child) => html`
        <${ProviderBox} key=${child.node.provider.uuid} ...${child} marks=${marks} />`)}</div>`}
    <${More} shown=${shown} count=${children.length} step=${Infinity} onMore=${setShown} />
    ${omitted > 0 && html`
      <p class="fine omitted">and ${counted(omitted, "provider")} that it does not touch</p>`}
  </div>`;
}

/** All providers below a provider, each behind its parent and without what is below it. */
const allBelow = ({ provider, children }, level) => children.flatMap((node) =>
  [{ node: { ...node, children: [] }, parent: provider, level }, ...allBelow(node, level + 1)]);

/** Chips of texts, each perhaps with a title. */
const Chips = ({ label, kind = "", chips, more = null }) => chips.length > 0 && html`
  <ul class="chips" aria-label=${label}>
    ${chips.map(({ text, title = null, isMarked = false }, index) => html`
      <li key=${index} class=${`chip ${kind}${isMarked ? " wanted" : ""}`} title=${title}>
        ${text}</li>`)}${more}
  </ul>`;

/** Conditions in words: why it, and all below it, get no claims (contract page 102, section 3). */
const conditionsOf = ({ conditions }) => Object.entries(conditions ?? {})
  .map(([key, terms]) => ({ text: conditionWords(key, terms), title: terms.reason }));

/** Parts that are lists, or objects of names and values; traits are drawn by themselves. */
const OTHERS = Object.entries(LISTED_PARTS).filter(([name]) => name !== "traits");

const NOTHING = new Map();

function Part({ name, single, value, names }) {
  const texts = Array.isArray(value) ? value
    : Object.entries(value ?? {}).map(([member, one]) => `${member}=${JSON.stringify(one)}`);
  return html`<${Chips} label=${name.replace(/^./, (first) => first.toUpperCase())} kind=${single}
    chips=${texts.map((text) =>
      ({ text: `${single} ${aggregateName(names, text)}`, title: text }))} />`;
}

function Traits({ names, sought = NONE, isBrief }) {
  const [isWhole, setWhole] = useState(false);
  const isOwn = (name) => name.startsWith("CUSTOM_");
  const all = names.toSorted((one, other) => sought.has(other) - sought.has(one)
    || isOwn(other) - isOwn(one) || one.localeCompare(other));
  const shown = isBrief ? all.filter((name) => sought.has(name))
    : all.slice(0, isWhole ? Infinity : MOST_TRAITS);
  const chips = shown.map((text) => ({ text, isMarked: sought.has(text) }));
  const omitted = isBrief ? 0 : all.length - shown.length;
  return html`<${Chips} label="Traits" chips=${chips} more=${omitted > 0 && html`
    <li><button type="button" class="chip more" onClick=${() => setWhole(true)}>
      ${omitted} more traits</button></li>`} />`;
}

const NONE = new Set();

function Inventories({ provider, takes, marks: { held, consumption, isBrief } }) {
  const shown = inClassOrder(provider.inventories)
    .filter(([name]) => !isBrief || own(takes, name));
  return shown.length > 0 && html`<ul class="inventories" aria-label="Inventories">
    ${shown.map(([name, inventory]) => html`<${Inventory} key=${name} name=${name}
      provider=${provider} inventory=${inventory} wanted=${own(takes, name)}
      consumption=${consumption}
      holds=${held?.get(provider.uuid)?.get(name)} />`)}
  </ul>`;
}

function Inventory({ name, provider, inventory, wanted = 0, holds = [], consumption }) {
  const held = holds.reduce((sum, { amount }) => sum + amount, 0);
  const total = totalOf(inventory, own(provider.usages, name) ?? 0, held);
  const consumed = consumption
    ? [...consumption.consumersOf(provider.uuid, name), ...consumption.takenBy(inventory)] : [];
  return html`<li title=${unitsOf(inventory)}>
    <span class="class">
      ${wanted ? html`<strong>+${count(wanted)} ${name}</strong>` : name}</span>
    <${Bar} total=${total} wanted=${wanted} />
    <span class="amount">${words(total)}</span>
    ${holds.map((hold) => html`
      <span class="fine held-part" key=${hold.uuid}>${holdWords(hold)}</span>`)}
    ${consumed.map((text) => html`<span class="fine consumed-part" key=${text}>${text}</span>`)}
  </li>`;
}

const holdWords = ({ amount, project, until, note }) =>
  `${count(amount)} held for ${project}${until ? ` until ${until}` : ""}${note ? `: ${note}` : ""}`;

function unitsOf(inventory) {
  const { min_unit: least, max_unit: most, step_size: step } = inventory;
  const greatest = count(Math.min(most, capacityOf(inventory)));
  return `One claim takes ${count(least)} to ${greatest}, in steps of ${count(step)}`;
}
