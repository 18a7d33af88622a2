// SPDX-License-Identifier: Apache-2.0
/** Why there are no (or no more) candidates: what rules trees out, the nearest trees, advice. */

import { count, counted } from "../model/numbers.js";
import { sentence } from "../model/reasons.js";
import { treeAddress } from "../routes.js";
import { html } from "./html.js";

/**
 * @param {object} document Of contract page 97, section 3.
 * @param {Map<string, string>} names Of aggregates.
 */
export function Explanation({ document, names }) {
  const { trees, funnel, nearest, advice, feasible } = document;
  const of = trees.considered;
  return html`<div class="explanation">
    <p class=${`verdict ${feasible ? "good" : "bad"}`} role="status">
      ${verdict(document)}</p>
    <${Section} name="funnel" title="Constraints that rule trees out"><ol class="funnel">
      <li><span class="step">all trees</span>
        <${FunnelBar} before=${of} after=${of} of=${of} />
        <span class="number">${count(of)}</span></li>
      ${funnel.map((step, index) => html`
        <${Step} key=${index} step=${step} of=${of} names=${names} />`)}
    </ol><//>
    ${advice.length > 0 && html`<${Section} name="advice" title="Changes that would help">
      <ul class="advice">${advice.map((line) => html`<li key=${line}>${line}</li>`)}</ul><//>`}
    ${nearest.length > 0 && !feasible && html`<${Section} name="nearest" title="Nearest trees">
      <ul class="nearest">${nearest.map((tree) => html`
        <${Nearest} key=${tree.root_provider.uuid} tree=${tree} names=${names} />`)}</ul><//>`}
  </div>`;
}

const Section = ({ name, title, children }) => html`<section aria-labelledby=${`${name}-title`}>
  <h3 id=${`${name}-title`}>${title}</h3>${children}</section>`;

function Step({ step, of, names }) {
  const { group, reason, detail, trees_before: before, trees_after: after } = step;
  return html`<li><span class="step">
      ${group !== null && html`<code>${group || "unsuffixed"}</code> `}
      ${sentence(reason, detail, names)}</span>
    <${FunnelBar} before=${before} after=${after} of=${of} />
    <span class="number">
      ${count(after)} <span class="bad">−${count(before - after)}</span></span></li>`;
}

function verdict({ feasible, trees, fits_when_empty: fits }) {
  const all = counted(trees.considered, "tree");
  if (feasible) return `${count(trees.matching)} of ${all} match.`;
  const would = fits ? "It would fit" : "It would not fit even";
  return `None of ${all} matches. ${would} if nothing were allocated.`;
}

function FunnelBar({ before, after, of }) {
  const width = (trees) => ({ width: `${of ? (100 * trees) / of : 0}%` });
  return html`<span class="funnel-bar" aria-hidden="true">
    <span class="lost" style=${width(before)}></span>
    <span class="left" style=${width(after)}></span></span>`;
}

function Nearest({ tree: { root_provider: root, blocked_by: blocks }, names }) {
  return html`<li><a href=${treeAddress(root.uuid)}>${root.name}</a>
    <ul>${blocks.map(({ group, reason, detail, providers = [] }, index) => html`<li key=${index}>
      ${group !== null && html`<span class="quieter">
        ${group ? `group ${group}` : "unsuffixed group"}: </span>`}
      ${sentence(reason, detail, names)}
      ${providers.length > 0 && html`
        <span class="fine"> — ${providers.map(freeOf).join("; ")}</span>`}
    </li>`)}</ul></li>`;
}

function freeOf({ name, resource_class: wanted, requested, free, attributes }) {
  const amounts = wanted ? `: ${count(free)} ${wanted} free, ${count(requested)} requested` : "";
  const values = Object.entries(attributes ?? {})
    .map(([attribute, value]) => `${attribute}: ${JSON.stringify(value)}`).join(", ");
  return `${name}${amounts}${attributes ? ` (${values || "none of these attributes"})` : ""}`;
}
