// SPDX-License-Identifier: Apache-2.0
/** One tree, drawn; without one, the table of the cloud. */

import * as endpoints from "../api/endpoints.js";
import { Trouble } from "../api/errors.js";
import { Holdings } from "../components/holdings.js";
import { html, useAnswer, useMemo } from "../components/html.js";
import { BarLegend, Heading, Panel } from "../components/layout.js";
import { Answer, Empty, Failure } from "../components/notices.js";
import { ProviderBox } from "../components/provider_box.js";
import { count, counted, shortened } from "../model/numbers.js";
import { INCLUDE } from "../model/parts.js";
import { own } from "../model/texts.js";
import { grown } from "../model/trees.js";
import { address, treeAddress } from "../routes.js";
import { CloudPage } from "./cloud.js";

const MOST_CONSUMERS = 500;
/* Shown of one tree; the page of consumers has all. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const ALL_TREES = { query: "view=table" };

export function TreePage({ route: { item } }) {
  if (!item) return html`<${CloudPage} route=${ALL_TREES} />`;
  return UUID.test(item) ? html`<${OneTree} key=${item} uuid=${item} />`
    : html`<${NoTree} uuid=${item} />`;
}

const NoTree = ({ uuid }) => html`<${Heading} title="Tree" /><${Empty} title="No such tree">
  <p>No provider has the uuid <code>${uuid}</code>, or it is gone.
    ${" "}<a href=${treeAddress("")}>All trees</a></p><//>`;

function OneTree({ uuid }) {
  const answer = useAnswer((api, signal) => read(api, uuid, signal), []);
  const { value } = answer;
  if (value === null) return html`<${NoTree} uuid=${uuid} />`;
  return html`${value ? html`<${TreeHeading} ...${value} answer=${answer} />`
    : html`<${Heading} title="Tree" />`}
    <${Answer} of=${answer} what="the tree" show=${() => html`<${Drawn} ...${value} />`} />`;
}

function TreeHeading({ root: { provider: { name, uuid } }, rows, readAt, answer }) {
  const host = /^[\w.-]+$/.test(name) ? name : uuid;
  return html`<${Heading} title=${name} summary=${html`${counted(rows.length, "provider")}
      ${" "}<code>${uuid}</code>, as of ${readAt.toLocaleTimeString()}`}>
    <a href=${address("plan", "", { goal: "empty", hosts: host })}>Plan moves that empty it</a>
    <button type="button" class="quiet" onClick=${answer.again} disabled=${answer.isBusy}>
      Refresh</button><//>`;
}

function Drawn({ root, rows, pools, consumers, held, hidden, names }) {
  const known = useMemo(() => new Map([...rows, ...pools].map((row) => [row.uuid, row])), [rows]);
  const consumption = useMemo(() => new Consumption([...known.values()]), [known]);
  const here = new Set(rows.map(({ uuid }) => uuid));
  // The counts of some consumers would look like those of all.
  const holders = consumers && !consumers.isCut ? holdersOf(consumers.entries) : null;
  const number = consumers
    && `${counted(consumers.entries.length, "consumer")}${consumers.isCut ? " of more" : ""}`;
  return html`
    ${hidden.map(({ what, error }) => html`<${Failure} key=${what} error=${error} what=${what} />`)}
    <${Panel} name="drawn" title="The tree" aside=${html`<${BarLegend} />`}>
      <${ProviderBox} node=${root} marks=${{ holders, held, names, consumption }} /><//>
    <${Panel} name="pools" title="Sharing providers" aside=${html`<p class="fine">
      They share their inventory with this tree through an aggregate.</p>`}>
      ${pools.length ? html`<div class="pools">${pools.map((pool) => html`<div key=${pool.uuid}>
          <${ProviderBox} node=${{ provider: pool, children: [] }}
            marks=${{ names, consumption }} />
          <a class="fine" href=${treeAddress(pool.root_provider_uuid)}>Show the tree</a>
        </div>`)}</div>`
        : html`<p class="quieter">None.</p>`}<//>
    ${consumers && html`<${Panel} name="holders" title="Consumers">
      ${consumers.entries.length
        ? html`<${Holdings} consumers=${consumers.entries} providers=${known} caption=${number}
            isHere=${(uuid) => here.has(uuid)} />`
        : html`<p class="quieter">No consumer has allocations here.</p>`}<//>`}`;
}

/** The number of consumers of each provider. */
function holdersOf(consumers) {
  const uuids = consumers.flatMap(({ allocations }) => Object.keys(allocations));
  return new Map([...Map.groupBy(uuids, (uuid) => uuid)].map(([uuid, all]) => [uuid, all.length]));
}

/** Read the tree, and as much around it as the policy shows; null if there is no such provider. */
async function read(api, uuid, signal) {
  const [provider] = await endpoints.providersByUuid(api, [uuid], signal);
  if (!provider) return null;
  const root = provider.root_provider_uuid;
  const readAt = new Date();
  const hidden = [];
  const tolerant = (what, call, instead) => call.catch((error) => {
    if (error.kind !== Trouble.HIDDEN) throw error;
    hidden.push({ what, error });
    return instead;
  });
  const [rows, consumers, held, names] = await Promise.all([
    visible(api, root, signal, tolerant),
    tolerant("Consumers", consumersOf(api, root, signal), null),
    tolerant("Holds", endpoints.heldInTree(api, root, signal), new Map()),
    endpoints.aggregateNames(api, signal),
  ]);
  const aggregates = [...new Set(rows.flatMap((row) => row.aggregates ?? []))];
  const sharing = await tolerant("Sharing providers",
    endpoints.sharingProviders(api, aggregates, signal), []);
  const uuids = new Set(rows.map((row) => row.uuid));
  const pools = sharing.filter((pool) => !uuids.has(pool.uuid));
  return { root: grown(rows)[0], rows, consumers, held, hidden, names, readAt, pools };
}

async function consumersOf(api, root, signal) {
  const page = await endpoints.consumers(api, { in_tree: root, limit: MOST_CONSUMERS }, signal);
  return { entries: page.consumers, isCut: page.links.length > 0 };
}

/** Read the providers of a tree with the parts that the policy shows, which has a rule for each. */
async function visible(api, root, signal, tolerant) {
  try {
    return await endpoints.providersOfTrees(api, [root], INCLUDE, signal);
  } catch (error) {
    if (error.kind !== Trouble.HIDDEN) throw error;
  }
  const parts = await Promise.all(INCLUDE.map((part) => tolerant(`The ${part}`,
    endpoints.providersByUuid(api, [root], signal, endpoints.including([part])).then(() => part),
    null)));
  return endpoints.providersOfTrees(api, [root], parts.filter(Boolean), signal);
}

const MOST_SHOWN = 16;
/* Inventories that consume of one inventory; a card may have more profiles and positions. */

/** The consumers of some providers, by inventory. */
class Consumption {
  /** @param {object[]} rows Providers as GET /treeclaim/providers lists them. */
  constructor(rows) {
    this.names = new Map(rows.map(({ uuid, name }) => [uuid, name]));
    const all = rows.flatMap(({ name, inventories, usages }) =>
      Object.entries(inventories ?? {}).flatMap(([by, { consumes = [] }]) =>
        consumes.map(({ provider, resource_class: consumed, amount }) => ({
          place: `${provider} ${consumed}`, name, by, used: amount * (own(usages, by) ?? 0),
        }))));
    this.byPlace = Map.groupBy(all.filter(({ used }) => used), ({ place }) => place);
  }

  /** Describe the present consumers of an inventory, the largest amounts first. */
  consumersOf(uuid, resourceClass) {
    const all = (this.byPlace.get(`${uuid} ${resourceClass}`) ?? [])
      .toSorted((one, other) => other.used - one.used);
    const lines = all.slice(0, MOST_SHOWN)
      .map(({ name, by, used }) => `${count(used)} consumed by ${by} of ${name}`);
    const others = all.slice(MOST_SHOWN);
    const rest = others.reduce((sum, { used }) => sum + used, 0);
    if (rest) lines.push(`${count(rest)} consumed by ${counted(others.length, "other")}`);
    return lines;
  }

  /** Describe the consumption of each unit of an inventory, by the consumed provider. */
  takenBy({ consumes = [] }) {
    return [...Map.groupBy(consumes, ({ provider }) => provider)].map(([provider, parts]) => {
      const amounts = parts.map(({ amount, resource_class: name }) => `${count(amount)} ${name}`);
      const name = this.names.get(provider) ?? shortened(provider);
      return `each takes ${amounts.join(" and ")} of ${name}`;
    });
  }
}
