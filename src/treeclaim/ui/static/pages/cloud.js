// SPDX-License-Identifier: Apache-2.0
/** The whole cloud: totals as bars, and the map, which moves as claims come in. */

import { Way, watch } from "../api/watching.js";
import { Bar, BarLegend, words } from "../components/bar.js";
import { Grouping, grouped, useAggregates } from "../components/grouping.js";
import { Heading } from "../components/heading.js";
import {
  Session, html, useContext, useEffect, useMemo, useRef, useState,
} from "../components/html.js";
import { LoadLegend } from "../components/load_legend.js";
import { Busy, Empty, Failure } from "../components/notices.js";
import { TreeMap } from "../components/tree_map.js";
import { TreeTable } from "../components/tree_table.js";
import { Cloud } from "../model/cloud.js";
import { lookOfLoad } from "../model/colours.js";
import { count, counted } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { DOMINANT } from "../model/totals.js";
import { countedTrees } from "../model/trees.js";
import { address, treeAddress } from "../routes.js";

export function CloudPage({ route }) {
  const { cloud, changed, error, conditionsError, way, again } = useCloud();
  if (error && !cloud) return html`<${Heading} title="Cloud" /><${Failure} error=${error} what="The totals" again=${again} />`;
  if (!cloud) return html`<${Heading} title="Cloud" /><${Busy} what="the cloud" />`;
  if (!cloud.parts.size) return html`<${Heading} title="Cloud" /><${NoTrees} />`;
  return html`<${Shown} cloud=${cloud} changed=${changed} conditionsError=${conditionsError} way=${way} route=${route} />`;
}

const NoTrees = () => html`<${Empty} title="There is no resource provider yet">
  <p>Load a topology, and the trees are here:</p>
  <pre>treeclaim demo --topology > cloud.yaml${"\n"}treeclaim load cloud.yaml</pre>
<//>`;

function Shown({ cloud, changed, conditionsError, way, route }) {
  const choice = Object.fromEntries(new URLSearchParams(route.query));
  const choose = (more) => {
    const next = { ...choice, ...more };
    location.hash = address("cloud", "", Object.fromEntries(Object.entries(next).filter(([, value]) => value)));
  };
  const { trees, totals } = useMemo(() => ({ trees: cloud.trees, totals: cloud.totals }), [cloud, changed]);
  const conditions = useMemo(() => cloud.conditions?.byTree() ?? new Map(), [cloud, changed]);
  const wanted = own(choice, "class") ?? DOMINANT;
  const sought = (choice.name ?? "").toLowerCase();
  const aggregates = useAggregates(choice.by ?? "", cloud);
  const groups = useMemo(() => grouped(trees, choice.by ?? "", cloud.aggregatesOf, cloud.names), [trees, choice.by, aggregates.value]);
  const isFound = (tree) => !sought || tree.name.toLowerCase().includes(sought);
  const found = useMemo(() => (sought ? trees.filter(isFound) : trees), [trees, sought]);
  const view = choice.view === "table" ? "table" : "map";
  return html`
    <${Heading} title="Cloud">
      <p class="summary">${countedTrees(trees)} · ${counted(Object.keys(totals).length, "resource class", "resource classes")}
        <${Live} way=${way} /></p>
    <//>
    <section aria-labelledby="totals-title" class="panel">
      <div class="panel-head"><h2 id="totals-title">Totals</h2><${BarLegend} /></div>
      <${Totals} totals=${totals} wanted=${wanted} onChoose=${(name) => choose({ class: name })} />
    </section>
    <section aria-labelledby="map-title" class="panel">
      <div class="panel-head"><h2 id="map-title">Trees</h2><${LoadLegend} hasSigns=${conditions.size > 0} /></div>
      <div class="controls">
        <label>Colour by <select value=${wanted} onChange=${(event) => choose({ class: event.target.value })}>
          <option value=${DOMINANT}>the class that is used most</option>
          ${wanted !== DOMINANT && !own(totals, wanted) && html`<option value=${wanted}>${wanted}: no inventory</option>`}
          ${Object.keys(totals).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select></label>
        <${Grouping} by=${choice.by ?? ""} trees=${trees} aggregatesOf=${cloud.aggregatesOf} names=${cloud.names} onChoose=${(by) => choose({ by })} />
        <label>Find <input type="search" value=${choice.name ?? ""} placeholder="part of a name"
          onInput=${(event) => choose({ name: event.target.value })} /></label>
        <div class="switch" role="group" aria-label="Show as">
          ${["map", "table"].map((name) => html`<button key=${name} type="button" aria-pressed=${view === name}
            onClick=${() => choose({ view: name === "map" ? "" : name })}>${name === "map" ? "Map" : "Table"}</button>`)}
        </div>
      </div>
      ${sought && html`<p role="status" class="fine">${countedTrees(found)} found</p>`}
      ${aggregates.error && html`<${Failure} error=${aggregates.error} what="The aggregates" />`}
      ${conditionsError && html`<${Failure} error=${conditionsError} what="The conditions" />`}
      ${view === "map"
        ? html`<${TreeMap} groups=${groups} changed=${changed} isFound=${isFound}
            look=${(tree) => ({ ...lookOfLoad(tree.totals, wanted), sign: conditions.get(tree.uuid)?.words })}
            onOpen=${(tree) => { location.hash = treeAddress(tree.uuid); }} />`
        : html`<${TreeTable} trees=${found} wanted=${wanted} conditions=${conditions} />`}
    </section>`;
}

function Totals({ totals, wanted, onChoose }) {
  return html`<ul class="totals">
    ${Object.entries(totals).map(([name, total]) => html`<li key=${name}>
      <button type="button" class="name" aria-pressed=${wanted === name} title="Colour the map by this class"
        onClick=${() => onChoose(wanted === name ? DOMINANT : name)}>${name}</button>
      <${Bar} total=${total} />
      <span class="amount">${words(total)}</span>
      <span class="fine">at most ${count(total.largest_free)} free on one of ${counted(total.providers, "provider")}</span>
    </li>`)}
  </ul>`;
}

const LIVE = {
  [Way.STREAM]: "live: changes come as they are made",
  [Way.ASK]: "live: the server tells of changes",
  [Way.POLL]: "read again every few seconds: this server has no feed of changes",
};

const Live = ({ way }) => (way ? html`<span class="live"><span class="dot" aria-hidden="true"></span>${LIVE[way]}</span>` : null);

/** Read the cloud, and keep it current. */
function useCloud() {
  const { api, revision } = useContext(Session);
  const [state, setState] = useState({ cloud: null, error: null, conditionsError: null, changed: new Map(), way: null });
  const [turn, setTurn] = useState(0);
  const changed = useRef(new Map());
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const tell = (cloud, uuids = []) => {
      const now = performance.now();
      // What is marked no more is forgotten, so that the map of marks stays small.
      changed.current = new Map([...changed.current].filter(([, when]) => now - when < 5_000));
      for (const uuid of uuids) changed.current.set(uuid, now);
      if (!signal.aborted) setState((before) => ({ ...before, cloud, error: null, changed: changed.current }));
    };
    const run = async () => {
      const cloud = await Cloud.read(api, signal);
      tell(cloud);
      // The map does not wait for its signs.
      cloud.readConditions(api).then(
        () => tell(cloud), (conditionsError) => signal.aborted || setState((before) => ({ ...before, conditionsError })),
      );
      await watch(api, cloud.cursor, {
        changes: async (changes) => tell(cloud, await cloud.apply(api, changes, signal)),
        relist: async () => {
          tell(cloud, await cloud.readAgain(api, signal));
          return cloud.cursor;
        },
        way: (way) => setState((before) => (before.way === way ? before : { ...before, way })),
      }, signal);
    };
    run().catch((error) => signal.aborted || setState((before) => ({ ...before, error })));
    return () => abort.abort();
  }, [api, revision, turn]);
  return { ...state, again: () => setTurn(turn + 1) };
}
