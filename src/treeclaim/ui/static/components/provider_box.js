// SPDX-License-Identifier: Apache-2.0
/** A provider and all below it, drawn as boxes within boxes. */

import { conditionWords } from "../model/conditions.js";
import { capacityOf, byImportance, totalOf } from "../model/totals.js";
import { aggregateName, count, counted } from "../model/numbers.js";
import { LISTED_PARTS } from "../model/parts.js";
import { own } from "../model/texts.js";
import { shortName } from "../model/trees.js";
import { Bar, words } from "./bar.js";
import { AggregateNames, Consumes, html, useContext, useState } from "./html.js";

const MOST_CHILDREN = 48;
const MOST_TRAITS = 10;
/* Shown at first; a host may have hundreds of devices, and of traits. */

const DEEPEST = 4;
/* Boxes within boxes take width from each other; what is further below is listed in the innermost one. */

/**
 * @param {{provider: object, children: object[], omitted: number}} node What to draw.
 * @param {object|null} parent The provider above it.
 * @param {number} level How many boxes it is in.
 * @param {Map<string, object>} wanted Amounts by class that a candidate takes, by provider.
 * @param {Set<string>} sought Traits to mark.
 * @param {Map<string, number>} holders How many consumers there are, by provider.
 * @param {Map<string, Map<string, object[]>>} held What holds have, by provider and class.
 */
export function ProviderBox({ node, parent = null, level = 0, wanted = NOTHING, sought = NONE, holders = null, held = NOTHING, isBrief = false }) {
  const { provider, omitted = 0 } = node;
  const children = level < DEEPEST ? node.children.map((child) => ({ node: child, parent: provider })) : allBelow(node);
  const [isWhole, setWhole] = useState(children.length <= MOST_CHILDREN);
  const takes = wanted.get(provider.uuid);
  const shown = isWhole ? children : children.slice(0, MOST_CHILDREN);
  const kind = children.length ? "inner" : "leaf";
  return html`<div class=${`provider ${kind}${takes ? " taken" : ""}`} id=${isBrief ? null : `provider-${provider.uuid}`}>
    <div class="provider-head">
      <h3 title=${`${provider.name} ${provider.uuid}`}>${shortName(provider.name, parent?.name)}</h3>
      ${level > DEEPEST + 1 && html`<span class="fine">below ${parent.name}</span>`}
      ${holders?.get(provider.uuid) && html`<span class="fine">${counted(holders.get(provider.uuid), "consumer")}</span>`}
    </div>
    <${Conditions} conditions=${provider.conditions} />
    <${Inventories} provider=${provider} takes=${takes} held=${held.get(provider.uuid) ?? NOTHING} isBrief=${isBrief} />
    <${Traits} names=${provider.traits} sought=${sought} isBrief=${isBrief} />
    ${!isBrief && OTHERS.map(([name, single]) => html`<${Chips} key=${name} name=${name} single=${single} texts=${textsOf(provider[name])} />`)}
    ${shown.length > 0 && html`<div class=${`children${level < DEEPEST ? "" : " listed"}`}>
      ${shown.map((child) => html`<${ProviderBox} key=${child.node.provider.uuid} node=${child.node} parent=${child.parent}
        level=${child.level ?? level + 1} wanted=${wanted} sought=${sought} holders=${holders} held=${held} isBrief=${isBrief} />`)}
    </div>`}
    ${!isWhole && html`<button type="button" onClick=${() => setWhole(true)}>Show ${count(children.length - MOST_CHILDREN)} more</button>`}
    ${omitted > 0 && html`<p class="fine omitted">and ${counted(omitted, "provider")} that it does not touch</p>`}
  </div>`;
}

/** All providers below one, each behind its parent and without what is below it. */
function allBelow({ provider, children }, level = DEEPEST + 1) {
  const found = [];
  const waiting = children.toReversed().map((node) => ({ node, parent: provider, level }));
  while (waiting.length) {
    const next = waiting.pop();
    found.push({ ...next, node: { ...next.node, children: [] } });
    for (const node of next.node.children.toReversed()) waiting.push({ node, parent: next.node.provider, level: next.level + 1 });
  }
  return found;
}

/** Parts without a look of their own. */
const OTHERS = Object.entries(LISTED_PARTS).filter(([name]) => name !== "traits");

/** What a provider has of a part, each in words: a list, or an object of names and values. */
const textsOf = (value) => Array.isArray(value) ? value
  : Object.entries(value ?? {}).map(([name, one]) => `${name}=${JSON.stringify(one)}`);

function Chips({ name, single, texts }) {
  const names = useContext(AggregateNames);
  return texts.length > 0 && html`<ul class="chips" aria-label=${name.replace(/^./, (first) => first.toUpperCase())}>
  ${texts.map((text) => html`<li key=${text} class=${`chip ${single}`} title=${text}>${single} ${aggregateName(names, text)}</li>`)}
  </ul>`;
}

/** Why it, and all below it, give nothing new (contract page 102, section 3). */
function Conditions({ conditions }) {
  const all = Object.entries(conditions ?? {});
  return all.length > 0 && html`<ul class="chips" aria-label="Conditions">
  ${all.map(([key, terms]) => html`<li key=${key} class="chip condition" title=${terms.reason}>${conditionWords(key, terms)}</li>`)}
  </ul>`;
}

const NOTHING = new Map();
const NONE = new Set();

function Inventories({ provider, takes, held, isBrief }) {
  const consumption = useContext(Consumes);
  const all = Object.entries(provider.inventories ?? {}).sort(([one], [other]) => byImportance(one, other));
  const shown = isBrief ? all.filter(([name]) => own(takes, name)) : all;
  if (!shown.length) return null;
  return html`<ul class="inventories" aria-label="Inventories">
    ${shown.map(([name, inventory]) => {
      const total = totalOf(inventory, own(provider.usages, name) ?? 0, sumOf(held.get(name) ?? []));
      const amount = own(takes, name) ?? 0;
      return html`<li key=${name} title=${units(inventory)}>
        <span class="class">${amount ? html`<strong>+${count(amount)} ${name}</strong>` : name}</span>
        <${Bar} total=${total} wanted=${amount} />
        <span class="amount">${words(total)}</span>
        ${(held.get(name) ?? []).map((part) => html`<span class="fine held-part" key=${part.uuid}>${heldWords(part)}</span>`)}
        ${!isBrief && [...consumption.consumersOf(provider.uuid, name), ...consumption.takenBy(inventory)]
          .map((text) => html`<span class="fine consumed-part" key=${text}>${text}</span>`)}</li>`;
    })}
  </ul>`;
}

const sumOf = (parts) => parts.reduce((sum, { amount }) => sum + amount, 0);

function heldWords({ amount, project, until, note }) {
  return `${count(amount)} held for ${project}${until ? ` until ${until}` : ""}${note ? `: ${note}` : ""}`;
}

function units(inventory) {
  const { min_unit: least, max_unit: most, step_size: step } = inventory;
  return `One claim takes ${count(least)} to ${count(Math.min(most, capacityOf(inventory)))}, in steps of ${count(step)}`;
}

function Traits({ names, sought, isBrief }) {
  const [isWhole, setWhole] = useState(false);
  const all = [...(names ?? [])].sort((one, other) =>
    sought.has(other) - sought.has(one) || isStandard(one) - isStandard(other) || one.localeCompare(other));
  const some = isBrief ? all.filter((name) => sought.has(name)) : isWhole ? all : all.slice(0, MOST_TRAITS);
  if (!some.length) return null;
  return html`<ul class="chips" aria-label="Traits">
    ${some.map((name) => html`<li key=${name} class=${`chip${sought.has(name) ? " wanted" : ""}`}>${name}</li>`)}
    ${!isBrief && some.length < all.length && html`<li><button type="button" class="chip more" onClick=${() => setWhole(true)}>
      ${all.length - some.length} more traits</button></li>`}
  </ul>`;
}

const isStandard = (name) => !name.startsWith("CUSTOM_");
