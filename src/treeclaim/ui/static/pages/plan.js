// SPDX-License-Identifier: Apache-2.0
/** Moves that empty hosts, make room, or defragment: steps, and the map before and after (contract page 101, section 5). */

import * as endpoints from "../api/endpoints.js";
import { Taken } from "../components/as_if.js";
import { AddressForm, choiceOf } from "../components/fields.js";
import { Explanation } from "../components/funnel.js";
import { Heading } from "../components/heading.js";
import { html, useAnswer, useMemo, useState } from "../components/html.js";
import { LoadLegend } from "../components/load_legend.js";
import { Busy, Failure, Mistake } from "../components/notices.js";
import { useSigns } from "../components/signs.js";
import { TreeMap } from "../components/tree_map.js";
import { AsIfError, givenBy } from "../model/as_if.js";
import { lookOfLoad } from "../model/colours.js";
import { count, counted, milliseconds, shortened } from "../model/numbers.js";
import { GOALS, REASONS, bodyOf, carriedOut, isAsked, providersIn } from "../model/plans.js";
import { own } from "../model/texts.js";
import { DOMINANT } from "../model/totals.js";
import { amounts, shortName } from "../model/trees.js";
import { consumerAddress, treeAddress } from "../routes.js";

const AT_ONCE = 100;
/* Rows shown; more on demand. */

export function PlanPage({ route }) {
  const { choice, rows } = choiceOf(route);
  const [turn, setTurn] = useState(0);
  return html`<${Heading} title="Plan"><p class="summary">The fewest moves that reach a goal. This page moves nothing.</p><//>
    <${PlanForm} key=${route.query} choice=${choice} rows=${rows} onAgain=${() => setTurn(turn + 1)} />
    ${isAsked(choice) && html`<${Found} key=${`${route.query} ${turn}`} choice=${choice} rows=${rows} />`}`;
}

function PlanForm({ choice, rows, onAgain }) {
  const [goal, setGoal] = useState(own(GOALS, choice.goal ?? "") ? choice.goal : "empty");
  const { value: mixes = [] } = useAnswer((api, signal) => endpoints.mixNames(api, signal), []);
  const field = (name, title, { first = "", isWide = false, ...more }) => html`<label key=${name} class=${isWide ? "wide" : ""}>${title}
    <input name=${name} defaultValue=${own(choice, name) ?? first} required=${name === GOALS[goal].needs} spellcheck=${false} ...${more} /></label>`;
  return html`<${AddressForm} page="plan" rows=${rows} verb="Plan" onAgain=${onAgain}>
    <label>Goal <select name="goal" onChange=${(event) => setGoal(event.target.value)}>
      ${Object.entries(GOALS).map(([name, { title }]) => html`<option key=${name} value=${name} selected=${name === goal}>${title}</option>`)}</select></label>
    ${goal === "empty" && field("hosts", "Hosts", { placeholder: "names or UUIDs", isWide: true })}
    ${goal === "aggregate" && field("aggregate", "Aggregate", { placeholder: "UUID", isWide: true })}
    ${goal === "fit" && [field("amount", "For", { type: "number", min: 1, first: "1" }), field("query", "of", { placeholder: "a query", isWide: true })]}
    ${goal === "keep" && [field("mix", "For the mix", { list: "mixes" }),
      html`<label>First <select name="trees"><option value="">as much as fits</option><option value="yes" selected=${choice.trees === "yes"}>empty trees</option></select></label>`]}
    <datalist id="mixes">${mixes.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
    ${field("moves", "Maximum of moves", { type: "number", min: 1, max: 10000, first: "100" })}
    <label>Kind of move <select name="live"><option value="">live: both places at once</option><option value="no" selected=${choice.live === "no"}>cold: the old place is released</option></select></label>
    ${field("types", "Only types", { placeholder: "e.g. INSTANCE" })}
  <//>`;
}

function Found({ choice, rows }) {
  const { value, error, again } = useAnswer((api, signal) => read(api, choice, rows, signal), []);
  if (error instanceof AsIfError) return html`<${Mistake} error=${error} />`;
  if (error) return html`<${Failure} error=${error} what="The plan" again=${again} />`;
  if (!value) return html`<${Busy} what="the plan" />`;
  const why = value.plan.stuck.find(({ explanation }) => explanation)?.explanation;
  return html`<${Verdict} ...${value} choice=${choice} rows=${rows} />
    ${value.plan.moves.length > 0 && html`<${Maps} ...${value} /><${Steps} ...${value} />`}
    ${value.plan.stuck.length > 0 && html`<${Stuck} stuck=${value.plan.stuck} />`}
    ${why && html`<section class="panel" aria-labelledby="why-title">
      <div class="panel-head"><h2 id="why-title">Why there is no room</h2></div><${Explanation} told=${why} query="" names=${value.names} /></section>`}`;
}

async function read(api, choice, rows, signal) {
  const supposed = await givenBy(api, rows, signal);
  const body = await bodyOf(api, choice, supposed, signal);
  const begin = performance.now();
  const plan = await endpoints.moves(api, body, signal);
  const took = performance.now() - begin;
  const [{ parts }, found, names] = await Promise.all([
    endpoints.totalsByTree(api, {}, signal, supposed?.given),
    endpoints.providersByUuid(api, providersIn(plan.moves), signal),
    endpoints.aggregateNames(api, signal),
  ]);
  const providers = new Map([...supposed?.made ?? [], ...found].map((row) => [row.uuid, row]));
  return { plan, took, trees: parts, providers, names };
}

function Verdict({ plan, took, choice, rows }) {
  const { reached, complete, optimal, moves, at_least: least, before, after, proven } = plan;
  const bound = optimal ? "No plan has fewer moves." : least ? `At least ${counted(least, "move")} are necessary.` : "";
  const isBest = choice.goal === "keep";
  const title = !isBest && reached && !moves.length ? "No move is needed" : isBest ? `${counted(moves.length, "move")}` : reached ? `${counted(moves.length, "move")} ${moves.length === 1 ? "reaches" : "reach"} the goal` : "The goal is not reached";
  return html`<section class="panel" aria-labelledby="verdict-title">
    <div class="panel-head"><h2 id="verdict-title"><span role="status" class=${reached ? "good" : "bad"}>${title}<span class="fine"> in ${milliseconds(took)}</span></span></h2></div>
    <p>${isBest ? (optimal ? "No plan is better." : "The best plan found.") : reached ? moves.length > 0 && bound
      : `${moves.length ? `${counted(moves.length, "move")} ${moves.length === 1 ? "brings" : "bring"} closest. ` : ""}${proven ? "No plan can reach it." : "Another plan may reach it."}`}
      ${!complete && html` <span class="bad">The time ran out: this is the best plan so far.</span>`}</p>
    ${rows.length > 0 && html`<${Taken} rows=${rows} placed=${plan.given?.placed} />`}
    <div class="table-box" tabindex="0" role="region" aria-label="Before and after"><table class="before-after">
      <thead><tr><th scope="col"><span class="sr">Number of</span></th><th scope="col" class="number">Before</th><th scope="col" class="number">After</th></tr></thead>
      <tbody>${NUMBERS.filter(([name]) => after[name] !== null && after[name] !== undefined).map(([name, words]) => html`<tr key=${name}><th scope="row">${words}</th>
        <td class="number">${count(before[name])}</td><td class="number"><strong>${count(after[name])}</strong></td></tr>`)}</tbody>
    </table></div></section>`;
}

const NUMBERS = [["left", "consumers to move away"], ["fits", "consumers that fit"], ["empty_trees", "trees without consumers"]];

function Maps({ plan, trees, providers }) {
  const [isAll, setAll] = useState(false);
  const { hasSigns, signed, failure } = useSigns();
  const { after, touched } = useMemo(() => carriedOut(trees, plan.moves, providers), [plan]);
  const shown = (all) => [{ title: "", place: "", trees: isAll ? all : all.filter(({ uuid }) => touched.has(uuid)) }];
  const groups = useMemo(() => [["Before", shown(trees)], ["After", shown(after)]], [plan, isAll]);
  return html`<section class="panel" aria-labelledby="maps-title">
    <div class="panel-head"><h2 id="maps-title">The map</h2><${LoadLegend} hasSigns=${hasSigns} /></div>
    ${failure}
    <div class="controls"><div class="switch" role="group" aria-label="Trees shown">
      ${[[false, "Trees of the plan"], [true, "All trees"]].map(([value, title]) => html`<button key=${title} type="button" aria-pressed=${isAll === value}
        onClick=${() => setAll(value)}>${title}</button>`)}</div></div>
    <div class="two-maps">${groups.map(([title, some]) => html`<div key=${title}><h3>${title}</h3>
      <${TreeMap} label=${`Map ${title.toLowerCase()} the plan`} groups=${some} look=${(tree) => signed(lookOfLoad(tree.totals, DOMINANT), tree)}
        onOpen=${(tree) => { location.hash = treeAddress(tree.uuid); }} /></div>`)}</div>
  </section>`;
}

function Steps({ plan: { moves }, providers }) {
  const [shown, setShown] = useState(AT_ONCE);
  return html`<section class="panel" aria-labelledby="steps-title">
    <div class="panel-head"><h2 id="steps-title">Steps</h2><p class="fine">Each step is possible after the previous steps.</p></div>
    <div class="table-box" tabindex="0" role="region" aria-label="Table of steps"><table class="steps">
      <thead><tr><th scope="col" class="number">Step</th><th scope="col">Consumer</th><th scope="col">From</th><th scope="col">To</th></tr></thead>
      <tbody>${moves.slice(0, shown).map((move, index) => html`<tr key=${move.consumer}><td class="number">${count(index + 1)}</td>
        <th scope="row"><a class="mono" href=${consumerAddress(move.consumer)} title=${move.consumer}>${shortened(move.consumer)}</a></th>
        <td><${Place} roots=${move.from_roots} held=${move.from} providers=${providers} /></td>
        <td><${Place} roots=${move.to_roots} held=${move.to} providers=${providers} /></td></tr>`)}</tbody></table>
      ${shown < moves.length && html`<button type="button" onClick=${() => setShown(shown + 4 * AT_ONCE)}>Show ${count(Math.min(4 * AT_ONCE, moves.length - shown))} more</button>`}
    </div></section>`;
}

function Place({ roots, held, providers }) {
  const short = (uuid) => shortName(providers.get(uuid)?.name ?? shortened(uuid), roots[0]?.name);
  return html`${roots.map(({ uuid, name }, index) => html`${index > 0 && " + "}<a href=${treeAddress(uuid)}>${name}</a>`)}
    <div class="fine">${Object.entries(held).map(([uuid, { resources }]) => `${short(uuid)}: ${amounts(resources)}`).join("; ")}</div>`;
}

const Stuck = ({ stuck }) => html`<section class="panel" aria-labelledby="stuck-title">
  <div class="panel-head"><h2 id="stuck-title">Consumers that stay</h2></div>
  <ul class="parts stuck">${stuck.slice(0, AT_ONCE).map(({ consumer, reason }) => html`<li key=${consumer}>
    <a class="mono" href=${consumerAddress(consumer)} title=${consumer}>${shortened(consumer)}</a><span>${own(REASONS, reason) ?? reason}</span></li>`)}</ul>
  ${stuck.length > AT_ONCE && html`<p class="fine">and ${count(stuck.length - AT_ONCE)} more</p>`}</section>`;
