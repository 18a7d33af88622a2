// SPDX-License-Identifier: Apache-2.0
/** One candidate, drawn onto its trees. */

import { counted } from "../model/numbers.js";
import { amounts, grown, pruned } from "../model/trees.js";
import { treeAddress } from "../routes.js";
import { html, useMemo } from "./html.js";
import { ProviderBox } from "./provider_box.js";

/**
 * @param {number} rank Place in the answer, from 1.
 * @param {object} candidate An allocation request, with its mappings.
 * @param {number|null} score If the query has an order.
 * @param {object[]} providers All providers of its trees.
 * @param {Set<string>} sought Traits in the query.
 */
export function Candidate({ rank, candidate, score, providers, sought }) {
  const { wanted, trees } = useMemo(() => {
    const taken = new Map(Object.entries(candidate.allocations)
      .map(([uuid, { resources }]) => [uuid, resources]));
    const tops = grown(providers).map((top) => pruned(top, ({ uuid }) => taken.has(uuid)));
    return { wanted: taken, trees: tops.filter(Boolean) };
  }, [providers, candidate]);
  const marks = { wanted, sought, isBrief: true };
  return html`<li class="candidate">
    <div class="candidate-head">
      <span class="rank" aria-hidden="true">${rank}</span>
      <h3><span class="sr">Candidate ${rank}: </span>
        ${trees.length ? trees.map(({ provider: { uuid, name } }, index) => html`
          ${index > 0 && " + "}<a href=${treeAddress(uuid)}>${name}</a>`)
          : [...wanted.keys()].join(", ")}</h3>
      ${score !== null && html`<span class="score" title="Score, of 1">
        <meter min="0" max="1" value=${score} aria-label="Score"></meter> ${score.toFixed(3)}
      </span>`}
    </div>
    <${Mappings} candidate=${candidate} providers=${providers} />
    <div class="drawn">${trees.map((node) => html`
      <${ProviderBox} key=${node.provider.uuid} node=${node} marks=${marks} />`)}</div>
  </li>`;
}

function Mappings({ candidate: { allocations, mappings = {} }, providers }) {
  const nameOf = (uuid) => providers.find((row) => row.uuid === uuid)?.name ?? uuid;
  const groups = Object.entries(mappings);
  const taken = Object.values(allocations);
  const words = `takes from ${counted(taken.length, "provider")}: `
    + taken.map(({ resources }) => amounts(resources)).join("; ");
  return html`<p class="fine mappings">${groups.some(([suffix]) => suffix)
    ? groups.map(([suffix, uuids]) => html`<span key=${suffix}>
        <code>${suffix || "(unsuffixed)"}</code> → ${uuids.map(nameOf).join(", ")}</span>`)
    : html`<span>${words}</span>`}</p>`;
}
