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
 * @param {number|null} score Where the question has an order.
 * @param {object[]} providers All providers of its trees.
 * @param {Set<string>} sought Traits that the question names.
 */
export function Candidate({ rank, candidate, score, providers, sought }) {
  const wanted = useMemo(() => new Map(Object.entries(candidate.allocations).map(([uuid, { resources }]) => [uuid, resources])), [candidate]);
  const byUuid = useMemo(() => new Map(providers.map((row) => [row.uuid, row])), [providers]);
  const trees = useMemo(() => grown(providers).map((top) => pruned(top, ({ uuid }) => wanted.has(uuid))).filter(Boolean), [providers, wanted]);
  const title = trees.map(({ provider }) => provider.name).join(" + ") || Object.keys(candidate.allocations).join(", ");
  return html`<li class="candidate">
    <div class="candidate-head">
      <span class="rank" aria-hidden="true">${rank}</span>
      <h3><span class="sr">Candidate ${rank}: </span>${trees.length
        ? trees.map(({ provider }, index) => html`${index > 0 && " + "}<a href=${treeAddress(provider.uuid)}>${provider.name}</a>`) : title}</h3>
      ${score !== null && html`<span class="score" title="Score, of 1"><meter min="0" max="1" value=${score} aria-label="Score"></meter> ${score.toFixed(3)}</span>`}
    </div>
    <${Mappings} candidate=${candidate} byUuid=${byUuid} />
    <div class="drawn">${trees.map((node) => html`<${ProviderBox} key=${node.provider.uuid} node=${node} wanted=${wanted} sought=${sought} isBrief />`)}</div>
  </li>`;
}

function Mappings({ candidate, byUuid }) {
  const groups = Object.entries(candidate.mappings ?? {});
  return html`<p class="fine mappings">${groups.length > 1 || groups[0]?.[0]
    ? groups.map(([suffix, uuids]) => html`<span key=${suffix}><code>${suffix || "(unsuffixed)"}</code> → ${uuids.map((uuid) => byUuid.get(uuid)?.name ?? uuid).join(", ")}</span>`)
    : html`<span>takes from ${counted(Object.keys(candidate.allocations).length, "provider")}: ${Object.values(candidate.allocations).map(({ resources }) => amounts(resources)).join("; ")}</span>`}</p>`;
}
