// SPDX-License-Identifier: Apache-2.0
/** The whole cloud: totals as bars, and the map, which changes as claims come in. */

import { Bar, words } from "../components/bar.js";
import { Grouping, grouped } from "../components/grouping.js";
import { html, useAnswer, useCallback, useMemo } from "../components/html.js";
import { BarLegend, Heading, MapLegend, Panel, Select, Switch } from "../components/layout.js";
import { Live, useLiveCloud } from "../components/live_cloud.js";
import { Answer, Empty, Failure } from "../components/notices.js";
import { TreeMap } from "../components/tree_map.js";
import { TreeTable } from "../components/tree_table.js";
import { lookOfLoad } from "../model/colours.js";
import { count, counted } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { DOMINANT, inClassOrder } from "../model/totals.js";
import { address } from "../routes.js";

export function CloudPage({ route }) {
  const live = useLiveCloud();
  const { value: cloud } = live;
  const classes = Object.keys(cloud?.totals ?? {}).length;
  return html`<${Heading} title="Cloud" summary=${cloud?.parts.size > 0 && html`
      ${counted(live.trees.length, "tree")}
      ${" · "}${counted(classes, "resource class", "resource classes")}
      ${" "}<${Live} ...${live} />`} />
    <${Answer} of=${live} what="the cloud" show=${() => (cloud.parts.size
      ? html`<${Shown} ...${live} cloud=${cloud} query=${route.query} />` : NO_TREES)} />`;
}

const NO_TREES = html`<${Empty} title="There is no resource provider yet">
  <p>Load a topology, and the trees are here:</p>
  <pre>treeclaim demo --topology > cloud.yaml${"\n"}treeclaim load cloud.yaml</pre><//>`;

function Shown({ cloud, trees, conditions, conditionsError, query }) {
  const choice = Object.fromEntries(new URLSearchParams(query));
  const { by = "", name = "", view = "map" } = choice;
  const sought = name.toLowerCase();
  const wanted = own(choice, "class") ?? DOMINANT;
  const choose = (more) => {
    const next = Object.entries({ ...choice, ...more }).filter(([, value]) => value);
    location.hash = address("cloud", "", Object.fromEntries(next));
  };
  const { value: groupedBy, error: aggregatesError } = useAnswer(
    async () => by && cloud.readPart("aggregates").then(() => by), [by, cloud]);
  const totals = inClassOrder(cloud.totals);
  const groups = useMemo(() => grouped(trees, by, cloud), [trees, by, groupedBy]);
  const found = useMemo(() =>
    trees.filter(({ name }) => name.toLowerCase().includes(sought)), [trees, sought]);
  const look = useCallback((tree) => lookOfLoad(tree.totals, wanted), [wanted]);
  const isUnknown = wanted !== DOMINANT && !own(cloud.totals, wanted);
  return html`
    <${Panel} name="totals" title="Totals" aside=${html`<${BarLegend} />`}>
      <ul class="totals">${totals.map(([name, total]) => html`<${Total} key=${name} name=${name}
        total=${total} isWanted=${wanted === name} onChoose=${choose} />`)}</ul><//>
    <${Panel} name="map" title="Trees"
      aside=${html`<${MapLegend} hasSigns=${conditions.size > 0} />`}>
      <div class="controls">
        <label>Colour by <${Select} value=${wanted} onChoose=${(name) => choose({ class: name })}
          options=${[
            [DOMINANT, "the class that is used most"],
            ...isUnknown ? [[wanted, `${wanted}: no inventory`]] : [],
            ...totals.map(([name]) => [name]),
          ]} /></label>
        <${Grouping} by=${by} trees=${trees} cloud=${cloud}
          onChoose=${(next) => choose({ by: next })} />
        <label>Find <input type="search" value=${name} placeholder="part of a name"
          onInput=${(event) => choose({ name: event.target.value })} /></label>
        <${Switch} label="Show as" options=${[["map", "Map"], ["table", "Table"]]} value=${view}
          onChoose=${(next) => choose({ view: next === "map" ? "" : next })} />
      </div>
      ${sought && html`<p role="status" class="fine">${counted(found.length, "tree")} found</p>`}
      ${aggregatesError && html`<${Failure} error=${aggregatesError} what="the aggregates" />`}
      ${conditionsError && html`<${Failure} error=${conditionsError} what="the conditions" />`}
      ${view === "table"
        ? html`<${TreeTable} trees=${found} wanted=${wanted} conditions=${conditions} />`
        : html`<${TreeMap} groups=${groups} look=${look} conditions=${conditions}
            sought=${sought} />`}
    <//>`;
}

function Total({ name, total, isWanted, onChoose }) {
  return html`<li>
    <button type="button" class="name" aria-pressed=${isWanted} title="Colour the map by this class"
      onClick=${() => onChoose({ class: isWanted ? DOMINANT : name })}>${name}</button>
    <${Bar} total=${total} />
    <span class="amount">${words(total)}</span>
    <span class="fine">at most ${count(total.largest_free)} free on one
      of ${counted(total.providers, "provider")}</span>
  </li>`;
}
