// SPDX-License-Identifier: Apache-2.0
/** The whole cloud: totals as bars, and the map, which changes as claims come in. */

import { Bar, words } from "../components/bar.js";
import { Grouping, grouped } from "../components/grouping.js";
import { html, useAnswer, useCallback, useMemo } from "../components/html.js";
import { BarLegend, Heading, MapLegend, Panel, Select, Switch } from "../components/layout.js";
import { Live, useLiveCloud } from "../components/live_cloud.js";
import { Answer, Empty, Failure } from "../components/notices.js";
import { Table } from "../components/table.js";
import { TreeMap } from "../components/tree_map.js";
import { lookOfLoad } from "../model/colours.js";
import { count, counted, percent } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { DOMINANT, byImportance, inClassOrder, loadOf, loadOfTree } from "../model/totals.js";
import { address, treeAddress } from "../routes.js";

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

const MOST_CLASSES = 6;
const MOST_KEYS = 4;
/* Conditions of a tree in its row; all are in the title. */

/**
 * @param {object[]} trees With `name`, `uuid`, `totals`.
 * @param {string} wanted The class that loads are of, or DOMINANT.
 * @param {Map<string, {keys: string[], words: string}>} conditions Of trees that have conditions,
 *   by the root's uuid.
 */
function TreeTable({ trees, wanted, conditions }) {
  const rows = useMemo(() => trees.map((tree) =>
    ({ ...tree, load: loadOfTree(tree.totals, wanted) })), [trees, wanted]);
  const columns = useMemo(() => [
    { title: "Tree", isHead: true, sortBy: ({ name }) => name, cell: ({ uuid, name }) => html`
      <a href=${treeAddress(uuid)}>${name}</a>
      ${conditions.has(uuid) && html`<${Sign} ...${conditions.get(uuid)} />`}` },
    { title: "Load", kind: "number", sortBy: ({ load }) => load.load ?? -1,
      cell: ({ load }) => html`${load.load === null ? "–" : percent(load.load)}
        <span class="of"> ${load.name}</span>` },
    ...classesOf(trees).map((title) => ({
      title, kind: "measure", sortBy: ({ totals }) => loadOf(own(totals, title)) ?? -1,
      cell: ({ totals }) => html`<${Measure} total=${own(totals, title)} />`,
    })),
  ], [trees, conditions]);
  return html`<${Table} label="Table of trees" name="trees" columns=${columns} rows=${rows}
    keyOf=${({ uuid }) => uuid} atOnce=${50} order=${{ column: "Load", isUp: false }}
    caption=${(shown) => `${counted(trees.length, "tree")}; ${count(shown)} shown`} />`;
}

const Measure = ({ total }) => (total ? html`<${Bar} total=${total} />
  <span class="amount">${count(total.used)} / ${count(total.capacity)}</span>` : "–");

function Sign({ keys, words }) {
  const more = keys.length - MOST_KEYS;
  return html`<span class="signed" title=${words}><span class="sign" aria-hidden="true"></span>
    <span class="keys" aria-hidden="true">
      ${keys.slice(0, MOST_KEYS).map((key) => html`<span key=${key}>${key}</span>`)}
      ${more > 0 && html`<span>and ${more} more</span>`}</span>
    <span class="sr">Conditions: ${words}</span></span>`;
}

/** The classes that most trees have, in their order. */
function classesOf(trees) {
  const names = Map.groupBy(trees.flatMap(({ totals }) => Object.keys(totals)), (name) => name);
  return [...names].sort(([, one], [, other]) => other.length - one.length)
    .slice(0, MOST_CLASSES).map(([name]) => name).sort(byImportance);
}
