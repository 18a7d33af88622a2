// SPDX-License-Identifier: Apache-2.0
/** Moves that reach a goal: their steps, and the map before and after (contract page 101). */

import * as endpoints from "../api/endpoints.js";
import { AddressForm, Assumptions, choiceOf } from "../components/as_if.js";
import { Explanation } from "../components/funnel.js";
import { html, useAnswer, useMemo, useState } from "../components/html.js";
import {
  ConsumerLink, Heading, MapLegend, Panel, Select, Switch,
} from "../components/layout.js";
import { Loaded } from "../components/notices.js";
import { useConditions } from "../components/signs.js";
import { Table } from "../components/table.js";
import { TreeMap } from "../components/tree_map.js";
import { givenBy } from "../model/as_if.js";
import { lookOfLoad } from "../model/colours.js";
import { count, counted, milliseconds, shortened } from "../model/numbers.js";
import { GOALS, REASONS, bodyOf, carriedOut, isComplete, providersIn } from "../model/plans.js";
import { own } from "../model/texts.js";
import { DOMINANT } from "../model/totals.js";
import { amounts, shortName } from "../model/trees.js";
import { treeAddress } from "../routes.js";

const AT_ONCE = 100;
/* Rows shown at first. */

export function PlanPage({ route }) {
  const { choice, rows } = choiceOf(route);
  const [turn, setTurn] = useState(0);
  return html`<${Heading} title="Plan"
      summary="The fewest moves that reach a goal. This page moves nothing." />
    <${PlanForm} key=${route.query} choice=${choice} rows=${rows}
      onAgain=${() => setTurn(turn + 1)} />
    ${isComplete(choice) && html`<${Loaded} key=${`${route.query} ${turn}`} what="the plan"
      load=${(api, signal) => read(api, choice, rows, signal)}
      show=${(value) => html`<${Shown} ...${value} choice=${choice} rows=${rows} />`} />`}`;
}

const UUIDS = { placeholder: "names or UUIDs" };

/** The fields of each goal: name, title, attributes. */
const FIELDS = {
  empty: [["hosts", "Hosts", UUIDS]],
  aggregate: [["aggregate", "Aggregate", { placeholder: "UUID" }]],
  leave: [],
  fit: [
    ["amount", "For", { type: "number", min: 1, value: "1" }],
    ["query", "of", { placeholder: "a query" }],
  ],
  keep: [["mix", "For the mix", { list: "mixes" }]],
};
const WIDE = new Set(["hosts", "aggregate", "query"]);
const FIRST = [["", "as much as fits"], ["yes", "empty trees"]];
const LIVE = [["", "live: both places at once"], ["no", "cold: the old place is released"]];

function PlanForm({ choice, rows, onAgain }) {
  const [goal, setGoal] = useState(own(GOALS, choice.goal ?? "") ? choice.goal : "empty");
  const { value: mixes = [] } = useAnswer(endpoints.mixNames, []);
  const field = ([name, title, { value = "", ...attributes }]) => html`
    <label key=${name} class=${WIDE.has(name) ? "wide" : ""}>${title}
      <input name=${name} defaultValue=${own(choice, name) ?? value} spellcheck=${false}
        required=${name === GOALS[goal].needs} ...${attributes} /></label>`;
  return html`<${AddressForm} page="plan" rows=${rows} verb="Plan" onAgain=${onAgain}>
    <label>Goal <${Select} name="goal" value=${goal} onChoose=${setGoal}
      options=${Object.entries(GOALS).map(([name, { title }]) => [name, title])} /></label>
    ${FIELDS[goal].map(field)}
    ${goal === "keep" && html`<label>First <${Select} name="trees" value=${choice.trees ?? ""}
      options=${FIRST} /></label>`}
    <datalist id="mixes">
      ${mixes.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
    ${field(["moves", "Maximum of moves", { type: "number", min: 1, max: 10000, value: "100" }])}
    <label>Kind of move <${Select} name="live" value=${choice.live ?? ""}
      options=${LIVE} /></label>
    ${field(["types", "Only types", { placeholder: "e.g. INSTANCE" }])}
  <//>`;
}

function Shown({ choice, rows, ...value }) {
  const { moves, stuck } = value.plan;
  const why = stuck.find(({ explanation }) => explanation)?.explanation;
  return html`<${Verdict} ...${value} isBest=${choice.goal === "keep"} rows=${rows} />
    ${moves.length > 0 && html`<${Maps} ...${value} /><${Steps} ...${value} />`}
    ${stuck.length > 0 && html`<${Stuck} stuck=${stuck} />`}
    ${why && html`<${Panel} name="why" title="Why there is no room">
      <${Explanation} document=${why} names=${value.names} /><//>`}`;
}

async function read(api, choice, rows, signal) {
  const assumptions = await givenBy(api, rows, signal);
  const body = await bodyOf(api, choice, assumptions, signal);
  const begin = performance.now();
  const plan = await api.post("/treeclaim/moves", body, signal);
  const took = performance.now() - begin;
  const [{ parts: trees }, found, names] = await Promise.all([
    endpoints.totals(api, { by: "tree" }, signal, assumptions?.given),
    endpoints.providersByUuid(api, providersIn(plan.moves), signal),
    endpoints.aggregateNames(api, signal),
  ]);
  const known = [...assumptions?.made ?? [], ...found];
  return { plan, took, trees, names, providers: new Map(known.map((row) => [row.uuid, row])) };
}

/** @param {boolean} isBest Whether the goal is the best plan, which can always be reached. */
function Verdict({ plan, took, isBest, rows }) {
  const { reached, moves, given } = plan;
  const number = counted(moves.length, "move");
  const verb = moves.length === 1 ? "reaches" : "reach";
  const title = isBest ? number : !reached ? "The goal is not reached"
    : moves.length ? `${number} ${verb} the goal` : "No move is needed";
  return html`<${Panel} name="verdict" title=${html`
    <span role="status" class=${reached ? "good" : "bad"}>
      ${title}<span class="fine"> in ${milliseconds(took)}</span></span>`}>
    <p>${proofOf(plan, isBest)}${!plan.complete && html`
      ${" "}<span class="bad">The time ran out: this is the best plan so far.</span>`}</p>
    <${Assumptions} rows=${rows} placed=${given?.placed} />
    <${BeforeAfter} ...${plan} /><//>`;
}

/** Describe how close to optimal a plan is. */
function proofOf({ reached, optimal, moves, at_least: least, proven }, isBest) {
  if (isBest) return optimal ? "No plan is better." : "The best plan found.";
  if (reached && !moves.length) return "";
  if (reached && optimal) return "No plan has fewer moves.";
  if (reached) return least ? `At least ${counted(least, "move")} are necessary.` : "";
  const verb = moves.length === 1 ? "brings" : "bring";
  const closest = moves.length ? `${counted(moves.length, "move")} ${verb} closest. ` : "";
  return `${closest}${proven ? "No plan can reach it." : "Another plan may reach it."}`;
}

const NUMBERS = [
  ["left", "consumers to move away"], ["fits", "consumers that fit"],
  ["empty_trees", "trees without consumers"],
];

function BeforeAfter({ before, after }) {
  const columns = [
    { title: html`<span class="sr">Number of</span>`, isHead: true, cell: ([, words]) => words },
    { title: "Before", kind: "number", cell: ([name]) => count(before[name]) },
    { title: "After", kind: "number",
      cell: ([name]) => html`<strong>${count(after[name])}</strong>` },
  ];
  const rows = NUMBERS.filter(([name]) => (after[name] ?? null) !== null);
  return html`<${Table} label="Before and after" name="before-after" columns=${columns}
    rows=${rows} />`;
}

function Maps({ plan, trees, providers }) {
  const [isAll, setAll] = useState(false);
  const { conditions, failure } = useConditions();
  const maps = useMemo(() => {
    const { after, touched } = carriedOut(trees, plan.moves, providers);
    const isShown = ({ uuid }) => isAll || touched.has(uuid);
    return [["Before", trees], ["After", after]].map(([title, all]) =>
      ({ title, groups: [{ title: "", place: "", trees: all.filter(isShown) }] }));
  }, [plan, isAll]);
  return html`<${Panel} name="maps" title="The map"
    aside=${html`<${MapLegend} hasSigns=${conditions.size > 0} />`}>
    ${failure}
    <div class="controls"><${Switch} label="Trees shown" value=${isAll} onChoose=${setAll}
      options=${[[false, "Trees of the plan"], [true, "All trees"]]} /></div>
    <div class="two-maps">${maps.map(({ title, groups }) => html`<div key=${title}><h3>${title}</h3>
      <${TreeMap} label=${`Map ${title.toLowerCase()} the plan`} groups=${groups}
        look=${lookOfDominant} conditions=${conditions} /></div>`)}</div><//>`;
}

const lookOfDominant = ({ totals }) => lookOfLoad(totals, DOMINANT);

function Steps({ plan: { moves }, providers }) {
  const columns = [
    { title: "Step", kind: "number", cell: (_, index) => count(index + 1) },
    { title: "Consumer", isHead: true,
      cell: ({ consumer }) => html`<${ConsumerLink} uuid=${consumer} />` },
    { title: "From", cell: ({ from, from_roots: roots }) => html`
      <${Place} allocations=${from} roots=${roots} providers=${providers} />` },
    { title: "To", cell: ({ to, to_roots: roots }) => html`
      <${Place} allocations=${to} roots=${roots} providers=${providers} />` },
  ];
  return html`<${Panel} name="steps" title="Steps"
    aside=${html`<p class="fine">Each step is possible after the previous steps.</p>`}>
    <${Table} label="Table of steps" name="steps" columns=${columns} rows=${moves}
      atOnce=${AT_ONCE} /><//>`;
}

function Place({ roots, allocations, providers }) {
  const words = Object.entries(allocations).map(([uuid, { resources }]) => {
    const name = providers.get(uuid)?.name ?? shortened(uuid);
    return `${shortName(name, roots[0]?.name)}: ${amounts(resources)}`;
  });
  return html`${roots.map(({ uuid, name }, index) => html`
    ${index > 0 && " + "}<a href=${treeAddress(uuid)}>${name}</a>`)}
    <div class="fine">${words.join("; ")}</div>`;
}

const Stuck = ({ stuck }) => html`<${Panel} name="stuck" title="Consumers that stay">
  <ul class="parts stuck">${stuck.slice(0, AT_ONCE).map(({ consumer, reason }) => html`
    <li key=${consumer}><${ConsumerLink} uuid=${consumer} />
      <span>${own(REASONS, reason) ?? reason}</span></li>`)}</ul>
  ${stuck.length > AT_ONCE && html`
    <p class="fine">and ${count(stuck.length - AT_ONCE)} more</p>`}<//>`;
