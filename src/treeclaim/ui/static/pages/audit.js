// SPDX-License-Identifier: Apache-2.0
/** The findings of the audit. */

import * as endpoints from "../api/endpoints.js";
import { Heading } from "../components/heading.js";
import { html, useAnswer } from "../components/html.js";
import { Busy, Empty, Failure } from "../components/notices.js";
import { KINDS, REPAIRABLE } from "../model/findings.js";
import { count, counted } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { address, consumerAddress, treeAddress } from "../routes.js";

export function AuditPage() {
  const { value, error, isBusy, again } = useAnswer((api, signal) => endpoints.audit(api, signal), []);
  return html`<${Heading} title="Audit"><p class="summary">Inconsistent and unused records</p>
      <button type="button" class="quiet" onClick=${again} disabled=${isBusy}>Refresh</button><//>
    ${error ? html`<${Failure} error=${error} what="The audit" again=${again} />`
      : value ? html`<${Findings} findings=${value.findings} />` : html`<${Busy} what="the records" />`}`;
}

function Findings({ findings }) {
  const all = Object.entries(findings);
  const found = all.filter(([, { count: number }]) => number);
  const clean = all.filter(([, { count: number }]) => !number);
  return html`
    <p role="status" class=${found.length ? "verdict" : "verdict good"}>${found.length
      ? `${counted(found.length, "kind")} of findings` : "No findings."}</p>
    <div class="findings">
      ${found.map(([kind, finding]) => html`<section key=${kind} class="panel" aria-labelledby=${`kind-${kind}`}>
        <h2 id=${`kind-${kind}`}>${own(KINDS, kind) ?? kind} <span class="badge">${count(finding.count)}</span></h2>
        <p class="fine"><code>${kind}</code>${REPAIRABLE.has(kind) && html`: <code>treeclaim audit --repair ${kind}</code> repairs it`}
          ${kind === "must_leave" && html`: <a href=${address("plan", "", { goal: "leave" })}>Plan moves for these consumers</a>`}</p>
        <${Items} kind=${kind} finding=${finding} /></section>`)}
      ${clean.length > 0 && html`<section class="panel" aria-labelledby="clean-title"><h2 id="clean-title">Kinds without findings</h2>
        <ul class="clean">${clean.map(([kind]) => html`<li key=${kind}>${own(KINDS, kind) ?? kind}: none</li>`)}</ul></section>`}
      ${!all.length && html`<${Empty} title="No kind was examined" />`}
    </div>`;
}

function Items({ kind, finding: { count: number, items } }) {
  const columns = [...new Set(items.flatMap((item) => Object.keys(item)))];
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${own(KINDS, kind) ?? kind}><table>
    ${items.length < number && html`<caption>the first ${count(items.length)}</caption>`}
    <thead><tr>${columns.map((name) => html`<th key=${name} scope="col">${name.replaceAll("_", " ")}</th>`)}</tr></thead>
    <tbody>${items.map((item, index) => html`<tr key=${index}>${columns.map((name) => html`<td key=${name}><${Value} name=${meaningOf(kind, name)} value=${own(item, name)} /></td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** What a member of a finding names; of a tree without inventory the uuid is that of its root. */
const meaningOf = (kind, name) => (kind === "empty_tree" && name === "uuid" ? "provider" : name);

function Value({ name, value }) {
  if (Array.isArray(value)) return html`<ul>${value.map((part, index) => html`<li key=${index}><${Value} name=${name} value=${part} /></li>`)}</ul>`;
  if (value === null || value === undefined) return "–";
  if (typeof value === "object") {
    const { uuid, name: title } = value;
    return uuid ? html`<${Value} name=${name} value=${uuid} />${title && ` ${title}`}` : html`<code>${JSON.stringify(value)}</code>`;
  }
  if (typeof value === "number") return html`<span class="number">${count(value)}</span>`;
  if (name === "consumer") return html`<a class="mono" href=${consumerAddress(value)}>${value}</a>`;
  if (name === "provider" || name === "root_providers") return html`<a class="mono" href=${treeAddress(value)}>${value}</a>`;
  return html`<span class="mono">${value}</span>`;
}
