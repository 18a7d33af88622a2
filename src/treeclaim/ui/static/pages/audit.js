// SPDX-License-Identifier: Apache-2.0
/** The findings of the audit. */

import { html, useAnswer } from "../components/html.js";
import { Heading, Panel } from "../components/layout.js";
import { Answer, Empty } from "../components/notices.js";
import { Table } from "../components/table.js";
import { count, counted } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { address, consumerAddress, treeAddress } from "../routes.js";

export function AuditPage() {
  const answer = useAnswer((api, signal) => api.get("/treeclaim/audit", {}, signal), []);
  return html`<${Heading} title="Audit" summary="Inconsistent and unused records">
      <button type="button" class="quiet" onClick=${answer.again} disabled=${answer.isBusy}>
        Refresh</button><//>
    <${Answer} of=${answer} what="the audit"
      show=${({ findings }) => html`<${Findings} findings=${Object.entries(findings)} />`} />`;
}

const titleOf = (kind) => own(KINDS, kind) ?? kind;

function Findings({ findings }) {
  if (!findings.length) return html`<${Empty} title="No kind was examined" />`;
  const found = findings.filter(([, finding]) => finding.count);
  const clean = findings.filter(([, finding]) => !finding.count);
  return html`
    <p role="status" class=${found.length ? "verdict" : "verdict good"}>
      ${found.length ? `${counted(found.length, "kind")} of findings` : "No findings."}</p>
    <div class="findings">
      ${found.map(([kind, finding]) => html`<${Panel} key=${kind} name=${kind}
        title=${html`${titleOf(kind)} <span class="badge">${count(finding.count)}</span>`}>
        <p class="fine"><code>${kind}</code>
          ${REPAIRABLE.has(kind) && html`:
            ${" "}<code>treeclaim audit --repair ${kind}</code> repairs it`}
          ${kind === "must_leave" && html`: <a href=${address("plan", "", { goal: "leave" })}>
            Plan moves for these consumers</a>`}</p>
        <${Items} kind=${kind} finding=${finding} /><//>`)}
      ${clean.length > 0 && html`<${Panel} name="clean" title="Kinds without findings">
        <ul class="clean">${clean.map(([kind]) => html`
          <li key=${kind}>${titleOf(kind)}: none</li>`)}</ul><//>`}
    </div>`;
}

function Items({ kind, finding: { count: number, items } }) {
  const columns = [...new Set(items.flatMap((item) => Object.keys(item)))].map((name) => ({
    title: name.replaceAll("_", " "),
    cell: (item) => html`<${Value} name=${meaningOf(kind, name)} value=${own(item, name)} />`,
  }));
  const caption = items.length < number ? (shown) => `the first ${count(shown)}` : null;
  return html`<${Table} label=${titleOf(kind)} columns=${columns} rows=${items}
    caption=${caption} />`;
}

/** The kind of object in each member of a finding; the root names a tree without inventory. */
const meaningOf = (kind, name) => (kind === "empty_tree" && name === "uuid" ? "provider" : name);

const ADDRESSES = {
  consumer: consumerAddress, provider: treeAddress, root_providers: treeAddress,
};

function Value({ name, value }) {
  if (Array.isArray(value)) {
    return html`<ul>${value.map((part, index) => html`
      <li key=${index}><${Value} name=${name} value=${part} /></li>`)}</ul>`;
  }
  if (value === null || value === undefined) return "–";
  if (typeof value === "object") {
    const { uuid, name: title } = value;
    return uuid ? html`<${Value} name=${name} value=${uuid} />${title && ` ${title}`}`
      : html`<code>${JSON.stringify(value)}</code>`;
  }
  if (typeof value === "number") return html`<span class="number">${count(value)}</span>`;
  const addressOf = own(ADDRESSES, name);
  return addressOf ? html`<a class="mono" href=${addressOf(value)}>${value}</a>`
    : html`<span class="mono">${value}</span>`;
}

const KINDS = {
  over_capacity: "Usage above the capacity",
  against_units: "Allocations that min_unit, max_unit or step_size no longer allow",
  without_inventory: "Allocations of a class that the provider lacks",
  without_provider: "Rows of a provider that does not exist",
  without_consumer: "Consumers without a record",
  empty_consumer: "Records of consumers without allocations",
  broken_root: "Wrong root providers",
  broken_parent: "Missing parents, or cycles of parents",
  in_many_trees: "Consumers in several trees: unfinished moves",
  same_host: "Hosts that exist twice under similar names",
  unused_aggregate: "Aggregates without members",
  unused_trait: "Custom traits that no provider has",
  unused_class: "Custom resource classes that are not used",
  empty_tree: "Trees without inventory",
  expired_hold: "Holds that still exist after their end",
  broken_hold: "Terms or draws of a consumer that is not a hold",
  broken_draw: "More drawn from holds than the consumer has",
  must_leave: "Consumers that must leave because of a condition",
  orphaned: "Consumers that no longer exist in the cloud",
};

/** Kinds that `treeclaim audit --repair` can repair. */
const REPAIRABLE = new Set([
  "without_provider", "without_consumer", "empty_consumer", "broken_root", "unused_aggregate",
  "expired_hold", "broken_hold", "broken_draw", "orphaned",
]);
