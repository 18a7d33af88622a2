// SPDX-License-Identifier: Apache-2.0
/** One tree, drawn; or a list to choose one from. */

import * as endpoints from "../api/endpoints.js";
import { Trouble } from "../api/errors.js";
import { BarLegend } from "../components/bar.js";
import { Heading } from "../components/heading.js";
import { Holdings } from "../components/holdings.js";
import { AggregateNames, Consumes, html, useAnswer, useMemo, useState } from "../components/html.js";
import { Busy, Empty, Failure } from "../components/notices.js";
import { ProviderBox } from "../components/provider_box.js";
import { TreeTable } from "../components/tree_table.js";
import { Cloud } from "../model/cloud.js";
import { Consumption } from "../model/consumption.js";
import { counted } from "../model/numbers.js";
import { INCLUDE } from "../model/parts.js";
import { DOMINANT } from "../model/totals.js";
import { grown } from "../model/trees.js";
import { address, treeAddress } from "../routes.js";

const MOST_CONSUMERS = 500;
/* Shown of one tree; the page of consumers has all. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function TreePage({ route: { item } }) {
  if (!item) return html`<${AllTrees} />`;
  return UUID.test(item) ? html`<${OneTree} key=${item} uuid=${item} />` : html`<${Heading} title="Tree" /><${NoTree} uuid=${item} />`;
}

const NoTree = ({ uuid }) => html`<${Empty} title="No such tree">
  <p>No provider has the uuid <code>${uuid}</code>, or it is gone. <a href=${treeAddress("")}>All trees</a></p><//>`;

function AllTrees() {
  const { value, error, again } = useAnswer((api, signal) => Cloud.read(api, signal), []);
  const [sought, setSought] = useState("");
  const trees = useMemo(() => (value?.trees ?? [])
    .filter(({ name }) => name.toLowerCase().includes(sought.toLowerCase())), [value, sought]);
  return html`<${Heading} title="Trees" />
    ${error && html`<${Failure} error=${error} what="The trees" again=${again} />`}
    ${!error && !value && html`<${Busy} what="the trees" />`}
    ${value && html`<section class="panel" aria-label="All trees">
      <div class="controls"><label>Find <input type="search" value=${sought} placeholder="part of a name"
        onInput=${(event) => setSought(event.target.value)} /></label></div>
      ${value.parts.size ? html`<${TreeTable} trees=${trees} wanted=${DOMINANT} />`
        : html`<${Empty} title="There is no resource provider yet" />`}
    </section>`}`;
}

function OneTree({ uuid }) {
  const { value, error, isBusy, again } = useAnswer((api, signal) => read(api, uuid, signal), [uuid]);
  if (error && !value) return html`<${Heading} title="Tree" /><${Failure} error=${error} what="The tree" again=${again} />`;
  if (!value) return html`<${Heading} title="Tree" /><${Busy} what="the tree" />`;
  if (!value.rows.length) {
    return html`<${Heading} title="Tree" /><${NoTree} uuid=${uuid} />`;
  }
  return html`<${AggregateNames.Provider} value=${value.names}><${Drawn} value=${value} isBusy=${isBusy} again=${again} /><//>`;
}

function Drawn({ value: { rows, pools, consumers, held, hidden, readAt }, isBusy, again }) {
  const [root] = useMemo(() => grown(rows), [rows]);
  const here = useMemo(() => new Map(rows.map((row) => [row.uuid, row])), [rows]);
  const known = useMemo(() => new Map([...rows, ...pools].map((row) => [row.uuid, row])), [rows, pools]);
  const consumption = useMemo(() => new Consumption([...known.values()]), [known]);
  const holders = useMemo(() => holdersOf(consumers?.entries ?? []), [consumers]);
  return html`
    <${Heading} title=${root.provider.name}>
      <p class="summary">${counted(rows.length, "provider")} <code>${root.provider.uuid}</code>, as of ${readAt.toLocaleTimeString()}</p>
      <a href=${address("plan", "", { goal: "empty", hosts: /^[\w.-]+$/.test(root.provider.name) ? root.provider.name : root.provider.uuid })}>Plan moves that empty it</a>
      <button type="button" class="quiet" onClick=${again} disabled=${isBusy}>Refresh</button>
    <//>
    ${hidden.map(({ what, error }) => html`<${Failure} key=${what} error=${error} what=${what} />`)}
    <section class="panel" aria-labelledby="drawn-title">
      <div class="panel-head"><h2 id="drawn-title">The tree</h2><${BarLegend} /></div>
      <${Consumes.Provider} value=${consumption}><${ProviderBox} node=${root} holders=${holders} held=${held} /><//>
    </section>
    <section class="panel" aria-labelledby="pools-title">
      <div class="panel-head"><h2 id="pools-title">Sharing providers</h2>
        <p class="fine">They share their inventory with this tree through an aggregate.</p></div>
      ${pools.length ? html`<div class="pools">${pools.map((pool) => html`<div key=${pool.uuid}>
          <${ProviderBox} node=${{ provider: pool, children: [] }} />
          <a class="fine" href=${treeAddress(pool.root_provider_uuid)}>Show the tree</a></div>`)}</div>`
        : html`<p class="quieter">None.</p>`}
    </section>
    ${consumers && html`<section class="panel" aria-labelledby="holders-title">
      <div class="panel-head"><h2 id="holders-title">Consumers</h2></div>
      ${consumers.entries.length
        ? html`<${Holdings} consumers=${consumers.entries} providers=${known} isHere=${(one) => here.has(one)}
            caption=${`${counted(consumers.entries.length, "consumer")}${consumers.isCut ? " of more" : ""}`} />`
        : html`<p class="quieter">No consumer has allocations here.</p>`}
    </section>`}`;
}

/** Read the tree, and as much around it as the policy lets this token see. */
async function read(api, uuid, signal) {
  const [found] = await endpoints.providersByUuid(api, [uuid], signal);
  if (!found) return { rows: [], pools: [], consumers: null, held: new Map(), hidden: [] };
  const root = found.root_provider_uuid;
  const readAt = new Date();
  const hidden = [];
  const tolerant = (what, promise, instead) => promise.catch((error) => {
    if (error.kind !== Trouble.HIDDEN) throw error;
    hidden.push({ what, error });
    return instead;
  });
  const [rows, consumers, held, names] = await Promise.all([
    visible(api, root, signal, hidden),
    tolerant("Consumers", consumersOf(api, root, signal), null),
    tolerant("Holds", endpoints.heldInTree(api, root, signal), new Map()),
    endpoints.aggregateNames(api, signal),
  ]);
  const aggregates = [...new Set(rows.flatMap((row) => row.aggregates ?? []))];
  const pools = await tolerant("Sharing providers", endpoints.sharingProviders(api, aggregates, signal), []);
  return { rows, consumers, held, hidden, names, readAt, pools: pools.filter(({ uuid }) => !rows.some((row) => row.uuid === uuid)) };
}

async function consumersOf(api, root, signal) {
  const answer = await endpoints.consumers(api, { in_tree: root, limit: MOST_CONSUMERS }, signal);
  return { entries: answer.consumers, isCut: answer.links.length > 0 };
}

/** Each part of a provider has a policy rule of its own: leave out those that are hidden. */
async function visible(api, root, signal, hidden) {
  try {
    return await endpoints.providersOfTrees(api, [root], INCLUDE, signal);
  } catch (error) {
    if (error.kind !== Trouble.HIDDEN) throw error;
  }
  const seen = [];
  for (const part of INCLUDE) {
    try {
      await endpoints.providersByUuid(api, [root], signal, { include: part });
      seen.push(part);
    } catch (error) {
      if (error.kind !== Trouble.HIDDEN) throw error;
      hidden.push({ what: `The ${part}`, error });
    }
  }
  return endpoints.providersOfTrees(api, [root], seen, signal);
}

function holdersOf(consumers) {
  const found = new Map();
  for (const { allocations } of consumers) {
    for (const uuid of Object.keys(allocations)) found.set(uuid, (found.get(uuid) ?? 0) + 1);
  }
  return found;
}
