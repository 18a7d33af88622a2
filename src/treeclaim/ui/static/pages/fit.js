// SPDX-License-Identifier: Apache-2.0
/** How many consumers of each flavor fit: now, at all, and in each aggregate. */

import * as endpoints from "../api/endpoints.js";
import { AsIf, Taken } from "../components/as_if.js";
import { Heading } from "../components/heading.js";
import { Session, html, useContext, useEffect, useState } from "../components/html.js";
import { Busy, Failure, Mistake } from "../components/notices.js";
import { AsIfError, givenBy, splitAsIf, withAsIf } from "../model/as_if.js";
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

export function FitPage({ route }) {
  const { api } = useContext(Session);
  const [text, setText] = useState(EXAMPLE);
  const [asIf, setAsIf] = useState(() => asIfOf(route));
  const [state, setState] = useState({ found: null, error: null, isBusy: false });
  const supposed = asIf.isOn ? asIf.rows : [];
  useEffect(() => { if (withAsIf("", supposed) !== route.query) setAsIf(asIfOf(route)); }, [route.query]);
  const run = async (event) => {
    event?.preventDefault();
    setState((before) => ({ ...before, error: null, isBusy: true }));
    try {
      setState({ found: await fitting(api, await readFlavors(api, text), supposed), error: null, isBusy: false });
      location.hash = address("fit", "", withAsIf("", supposed));
    } catch (error) {
      setState({ found: null, error, isBusy: false });
    }
  };
  return html`<${Heading} title="Fit"><p class="summary">How many more consumers of each flavor fit now, and how many would fit in an empty cloud?</p><//>
    <form class="panel ask" onSubmit=${run}>
      <label class="query-text"><span>Flavors: extra specs, the JSON of <code>openstack flavor list --long -f json</code>, or queries</span>
        <textarea rows="12" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>
      <${AsIf} asIf=${asIf} onChange=${setAsIf} />
      <div class="controls">
        <button type="submit" class="primary" disabled=${state.isBusy}>Count</button>
        <label>or a file <input type="file" accept=".json,.txt,.conf,.ini,text/*,application/json"
          onChange=${async (event) => { const [file] = event.target.files; if (file) setText(await file.text()); }} /></label>
      </div>
    </form>
    ${state.isBusy && html`<${Busy} what="the counts" />`}
    ${state.error && (state.error instanceof FlavorError || state.error instanceof AsIfError
      ? html`<${Mistake} error=${state.error} />`
      : html`<${Failure} error=${state.error} what="The counts" again=${() => run()} />`)}
    ${state.found && html`<${Fitting} ...${state.found} />`}`;
}

function asIfOf({ query }) {
  const { rows } = splitAsIf(query);
  return { isOn: rows.length > 0, rows };
}

async function fitting(api, flavors, supposed) {
  if (!flavors.length) throw new FlavorError("There is no flavor in this text.");
  const requests = Object.fromEntries(flavors.map(({ name, query }) => [name, query]));
  const [totals, names, made] = await Promise.all([endpoints.totalsByAggregate(api), endpoints.aggregateNames(api), givenBy(api, supposed)]);
  const aggregates = totals.map(({ uuid }) => uuid).slice(0, MOST_AGGREGATES);
  const { capacity, given } = await endpoints.capacity(api, {
    requests, ...aggregates.length && { domains: aggregates }, ...made && { given: made.given },
  });
  return { rows: flavors.map(({ name, query }) => ({ name, query, names, ...own(capacity, name) })), supposed: made && supposed, placed: given?.placed };
}

function Fitting({ rows, supposed, placed }) {
  return html`<section class="panel fit" aria-labelledby="fit-title">
    <div class="panel-head"><h2 id="fit-title"><span role="status">${counted(rows.length, "flavor")}</span></h2>
      <p class="fine">The bar shows the number that fits now as a share of the number that fits in an empty cloud.</p></div>
    ${supposed && html`<${Taken} rows=${supposed} placed=${placed} />`}
    <div class="table-box" tabindex="0" role="region" aria-label="How many fit">
      <table><thead><tr><th scope="col">Flavor</th><th scope="col" class="number">Fit now</th><th scope="col"><span class="sr">Share</span></th>
        <th scope="col" class="number">When empty</th><th scope="col" class="number">At most</th><th scope="col">By aggregate</th></tr></thead>
      <tbody>${rows.map((row) => html`<${FlavorRow} key=${row.name} row=${row} supposed=${supposed ?? []} />`)}</tbody></table>
    </div></section>`;
}

function FlavorRow({ row, supposed }) {
  const share = row.when_empty ? row.fits / row.when_empty : 0;
  const name = row.complete ? count : (number) => `${count(number)} or more`;
  return html`<tr>
    <th scope="row"><a href=${address("ask", "", withAsIf(row.query, supposed))} title="Ask for it">${row.name}</a></th>
    <td class="number"><strong class=${row.fits ? "" : "bad"}>${name(row.fits)}</strong></td>
    <td><span class="bar" aria-hidden="true"><span class="used" style=${{ width: `${100 * share}%` }}></span><span class="free"></span></span></td>
    <td class="number">${name(row.when_empty)}</td>
    <td class="number">${row.at_most === null ? "unknown" : count(row.at_most)}</td>
    <td>${row.domains?.length ? html`<details><summary>${counted(row.domains.length, "aggregate")}</summary>
      <ul class="parts">${row.domains.map(({ uuid, fits }) => html`<li key=${uuid}><span class="mono" title=${uuid}>${aggregateName(row.names, uuid)}</span><span class="number">${count(fits)}</span></li>`)}</ul></details>` : "none"}</td>
  </tr>`;
}
