// SPDX-License-Identifier: Apache-2.0
/** Why there are no (or no more) candidates: what rules trees out, the nearest trees, advice. */

import { withAsIf } from "../model/as_if.js";
import { count, counted } from "../model/numbers.js";
import { encoded, isAskable, pairsOf, readQuery } from "../model/query.js";
import { groupName, sentence } from "../model/reasons.js";
import { address, treeAddress } from "../routes.js";
import { html } from "./html.js";

/**
 * @param {object} told The document of contract page 97, section 3, and `hasPools`: whether the trees
 *   that it counts have pools among them.
 * @param {string} query The question.
 * @param {Map<string, string>} names Of aggregates.
 * @param {object[]} rows What it takes for granted.
 */
export function Explanation({ told, query, names, rows = [] }) {
  const { trees, funnel, nearest, advice } = told;
  return html`<div class="explanation">
    <p class=${told.feasible ? "verdict good" : "verdict bad"} role="status">${verdict(told)}</p>
    <section aria-labelledby="funnel-title"><h3 id="funnel-title">Constraints that rule trees out</h3>
      <ol class="funnel">
        <li><span class="step">all ${told.hasPools ? "trees and pools" : "trees"}</span><${FunnelBar} before=${trees.considered} after=${trees.considered} of=${trees.considered} />
          <span class="number">${count(trees.considered)}</span></li>
        ${funnel.map((step, index) => html`<li key=${index}>
          <span class="step">${step.group !== null && html`<code>${step.group || "unsuffixed"}</code> `}${sentence(step.reason, step.detail, names)}</span>
          <${FunnelBar} before=${step.trees_before} after=${step.trees_after} of=${trees.considered} />
          <span class="number">${count(step.trees_after)} <span class="bad">−${count(step.trees_before - step.trees_after)}</span></span></li>`)}
      </ol>
    </section>
    ${advice.length > 0 && html`<section aria-labelledby="advice-title"><h3 id="advice-title">Changes that would help</h3>
      <ul class="advice">${advice.map((line) => html`<${Advice} key=${line} line=${line} query=${query} rows=${rows} />`)}</ul></section>`}
    ${nearest.length > 0 && !told.feasible && html`<section aria-labelledby="nearest-title"><h3 id="nearest-title">Nearest trees</h3>
      <ul class="nearest">${nearest.map((tree) => html`<${Nearest} key=${tree.root_provider.uuid} tree=${tree} names=${names} />`)}</ul></section>`}
  </div>`;
}

/** An advice, with the question that follows it where that is plain. */
function Advice({ line, query, rows }) {
  const [, name, value] = /^Without ([^= ]+)=(\S+) /.exec(line) ?? [];
  const pairs = pairsOf(query);
  const rest = pairs.filter((pair) => pair[0] !== name || pair[1] !== value);
  const text = rest.map(([other, content]) => `${encoded(other)}=${encoded(content)}`).join("&");
  const isPlain = rest.length === pairs.length - 1 && isAskable(readQuery(text));
  return html`<li><span>${line}</span>${isPlain && html` <a href=${address("ask", "", withAsIf(text, rows))}>Ask without it</a>`}</li>`;
}

function verdict({ feasible, trees, hasPools, fits_when_empty: fits }) {
  const all = hasPools ? `${count(trees.considered)} trees and pools` : counted(trees.considered, "tree");
  if (feasible) return `${count(trees.matching)} of ${all} match.`;
  const ever = fits ? "It would fit if nothing were allocated." : "It would not fit even if nothing were allocated.";
  return `None of ${all} matches. ${ever}`;
}

function FunnelBar({ before, after, of }) {
  const width = (part) => ({ width: `${of ? (100 * part) / of : 0}%` });
  return html`<span class="funnel-bar" aria-hidden="true"><span class="lost" style=${width(before)}></span><span class="left" style=${width(after)}></span></span>`;
}

function Nearest({ tree: { root_provider: root, blocked_by: blocks }, names }) {
  return html`<li><a href=${treeAddress(root.uuid)}>${root.name}</a>
    <ul>${blocks.map((block, index) => html`<li key=${index}>
      ${block.group !== null && html`<span class="quieter">${groupName(block.group)}: </span>`}${sentence(block.reason, block.detail, names)}
      ${block.providers?.length > 0 && html`<span class="fine"> — ${block.providers.map(free).join("; ")}</span>`}
    </li>`)}</ul></li>`;
}

const free = ({ name, resource_class: wanted, requested, free: left, attributes }) =>
  (wanted ? `${name}: ${count(left)} ${wanted} free, ${count(requested)} requested` : name) + told(attributes);

const told = (attributes) => (attributes ? ` (${Object.entries(attributes).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ") || "none of these attributes"})` : "");
