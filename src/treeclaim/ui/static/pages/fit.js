// SPDX-License-Identifier: Apache-2.0
/** How many consumers of each flavor fit: now, at all, and in each aggregate. */

import * as endpoints from "../api/endpoints.js";
import { AsIf, Assumptions, asIfOf, assumed } from "../components/as_if.js";
import { html, useEffect, useState } from "../components/html.js";
import { Heading, Panel } from "../components/layout.js";
import { Loaded } from "../components/notices.js";
import { Table } from "../components/table.js";
import { givenBy, withAsIf } from "../model/as_if.js";
import { FlavorError, readFlavors } from "../model/flavors.js";
import { aggregateName, count, counted } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { address } from "../routes.js";

const EXAMPLE = `[m1.large]
vcpus=4
ram=8192
disk=40

[m1.fpga]
vcpus=0
resources_CPU:VCPU=4
resources_CPU:MEMORY_MB=8192
resources_FPGA:FPGA=1
same_subtree=_CPU,_FPGA
group_policy=none

two-gpus: resources=VGPU:2,VCPU:8,MEMORY_MB:16384`;

const MOST_AGGREGATES = 1000;
/* Bound of one call (contract page 98, section 5). */

const FILES = ".json,.txt,.conf,.ini,text/*,application/json";

export function FitPage({ route: { query } }) {
  const [text, setText] = useState(EXAMPLE);
  const [asIf, setAsIf] = useState(() => asIfOf(query));
  const [counting, setCounting] = useState(null);
  const rows = assumed(asIf);
  useEffect(() => { if (withAsIf("", rows) !== query) setAsIf(asIfOf(query)); }, [query]);
  const submit = (event) => {
    event.preventDefault();
    setCounting({ text, rows, turn: (counting?.turn ?? 0) + 1 });
    location.hash = address("fit", "", withAsIf("", rows));
  };
  const choose = async ({ target: { files: [file] } }) => {
    if (file) setText(await file.text());
  };
  return html`<${Heading} title="Fit" summary="How many more consumers of each flavor fit now,
      and how many would fit in an empty cloud?" />
    <form class="panel ask" onSubmit=${submit}>
      <label class="query-text"><span>Flavors: extra specs, the JSON
        of <code>openstack flavor list --long -f json</code>, or queries</span>
        <textarea rows="12" spellcheck=${false} value=${text}
          onInput=${(event) => setText(event.target.value)}></textarea></label>
      <${AsIf} asIf=${asIf} onChange=${setAsIf} />
      <div class="controls">
        <button type="submit" class="primary">Count</button>
        <label>or a file <input type="file" accept=${FILES} onChange=${choose} /></label>
      </div>
    </form>
    ${counting && html`<${Loaded} key=${counting.turn} what="the counts"
      load=${(api, signal) => read(api, counting, signal)}
      show=${(value) => html`<${Shown} ...${value} rows=${counting.rows} />`} />`}`;
}

async function read(api, { text, rows }, signal) {
  const flavors = await readFlavors(api, text, signal);
  if (!flavors.length) throw new FlavorError("There is no flavor in this text.");
  const [{ parts }, names, assumptions] = await Promise.all([
    endpoints.totals(api, { by: "aggregate" }, signal), endpoints.aggregateNames(api, signal),
    givenBy(api, rows, signal),
  ]);
  const domains = parts.map(({ uuid }) => uuid).slice(0, MOST_AGGREGATES);
  const body = {
    requests: Object.fromEntries(flavors.map(({ name, query }) => [name, query])),
    ...domains.length && { domains }, ...assumptions && { given: assumptions.given },
  };
  const { capacity, given } = await api.post("/treeclaim/capacity", body, signal);
  const counts = flavors.map((flavor) => ({ ...flavor, ...own(capacity, flavor.name) }));
  return { counts, names, placed: given?.placed };
}

function Shown({ counts, names, placed, rows }) {
  const number = ({ complete }, amount) => (complete ? count(amount) : `${count(amount)} or more`);
  const columns = [
    { title: "Flavor", isHead: true, cell: ({ name, query }) => html`
      <a href=${address("ask", "", withAsIf(query, rows))} title="Ask for it">${name}</a>` },
    { title: "Fit now", kind: "number", cell: (row) => html`
      <strong class=${row.fits ? "" : "bad"}>${number(row, row.fits)}</strong>` },
    { title: html`<span class="sr">Share</span>`,
      cell: ({ fits, when_empty: most }) => html`<${Share} share=${most ? fits / most : 0} />` },
    { title: "When empty", kind: "number", cell: (row) => number(row, row.when_empty) },
    { title: "At most", kind: "number",
      cell: ({ at_most: most }) => (most === null ? "unknown" : count(most)) },
    { title: "By aggregate", cell: ({ domains = [], complete }) => html`
      <${ByAggregate} domains=${domains} complete=${complete} names=${names} />` },
  ];
  return html`<${Panel} name="fit"
    title=${html`<span role="status">${counted(counts.length, "flavor")}</span>`}
    aside=${html`<p class="fine">The bar shows the number that fits now as a share of the number
      that fits in an empty cloud.</p>`}>
    <${Assumptions} rows=${rows} placed=${placed} />
    <${Table} label="How many fit" name="fit" columns=${columns} rows=${counts}
      keyOf=${({ name }) => name} /><//>`;
}

const Share = ({ share }) => html`<span class="bar" aria-hidden="true">
  <span class="used" style=${{ width: `${100 * share}%` }}></span>
  <span class="free"></span></span>`;

const ByAggregate = ({ domains, complete, names }) => (domains.length
  ? html`<details><summary>${counted(domains.length, "aggregate")}</summary>
      <ul class="parts">${domains.map(({ uuid, fits }) => html`<li key=${uuid}>
        <span class="mono" title=${uuid}>${aggregateName(names, uuid)}</span>
        <span class="number">${count(fits)}</span></li>`)}</ul></details>`
  : complete ? "none" : "unknown");
