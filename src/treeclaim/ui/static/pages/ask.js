// SPDX-License-Identifier: Apache-2.0
/** Finds candidates and draws them, or says why there are none. */

import * as endpoints from "../api/endpoints.js";
import { AsIf, Assumptions, asIfOf, assumed } from "../components/as_if.js";
import { Explanation } from "../components/funnel.js";
import { html, useAnswer, useEffect, useMemo, useState } from "../components/html.js";
import { BarLegend, Heading, More, Panel } from "../components/layout.js";
import { Loaded } from "../components/notices.js";
import { ProviderBox } from "../components/provider_box.js";
import { QueryForm } from "../components/query_form.js";
import { givenBy, splitAsIf, withAsIf } from "../model/as_if.js";
import { counted, milliseconds } from "../model/numbers.js";
import { readQuery, writeQuery } from "../model/query.js";
import { asCurl, asFlavor, asPython } from "../model/snippets.js";
import { own } from "../model/texts.js";
import { amounts, grown, pruned } from "../model/trees.js";
import { address, treeAddress } from "../routes.js";

const EXAMPLE = "resources=VCPU:4,MEMORY_MB:8192&limit=100";
const AT_ONCE = 8;
/* Candidates drawn at first, and half of those drawn with each further step. */

export function AskPage({ route: { query: current } }) {
  const [{ request, asIf }, setForm] = useState(() => formOf(current));
  const [turn, setTurn] = useState(0);
  const { value: names } = useAnswer(endpoints.names, []);
  const query = writeQuery(request);
  const text = withAsIf(query, assumed(asIf));
  useEffect(() => { if (current !== text) setForm(formOf(current)); }, [current]);
  const setRequest = (next) => setForm({ request: next, asIf });
  const submit = (event) => {
    event.preventDefault();
    if (text === current) setTurn(turn + 1);
    else location.hash = address("ask", "", text);
  };
  const setAsIf = (chosen, isSwitched) => {
    setForm({ request, asIf: chosen });
    // A query that was submitted is submitted again at once.
    if (isSwitched && current === text) {
      location.hash = address("ask", "", withAsIf(query, assumed(chosen)));
    }
  };
  const forms = {
    curl: asCurl(query), Python: asPython(query), "flavor extra specs": asFlavor(query),
  };
  const { query: submitted, rows } = splitAsIf(current);
  return html`<${Heading} title="Ask"
      summary="Which combinations of providers can satisfy this request?" />
    <form class="panel ask" onSubmit=${submit}>
      <${QueryForm} request=${request} names=${names ?? { traits: [], classes: [] }}
        onChange=${setRequest} />
      <label class="query-text"><span>Query</span>
        <${QueryText} query=${query} onChange=${(typed) => setRequest(readQuery(typed))} /></label>
      <${AsIf} asIf=${asIf} onChange=${setAsIf} />
      <div class="controls"><button type="submit" class="primary">Ask</button>
        ${current && current !== text && html`
          <span class="fine">changed since the last search</span>`}
        ${!asIf.isOn && html`<${Snippets} forms=${forms} />`}</div>
    </form>
    ${submitted && html`<${Loaded} key=${`${current} ${turn}`} what="the candidates"
      load=${(api, signal) => read(api, submitted, rows, signal)}
      back=${{ to: address("ask"), text: "Begin with an example" }}
      show=${(value) => html`<${Shown} ...${value} query=${submitted} rows=${rows} />`} />`}`;
}

const formOf = (current) => ({
  request: readQuery(splitAsIf(current).query || EXAMPLE), asIf: asIfOf(current),
});

/** The query as text. While the user types, the text stays as typed. */
function QueryText({ query, onChange }) {
  const [typed, setTyped] = useState(null);
  const type = ({ target }) => {
    setTyped(target.value);
    onChange(target.value);
  };
  const press = (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  return html`<textarea rows="2" spellcheck=${false} value=${typed ?? query} onInput=${type}
    onBlur=${() => setTyped(null)} onKeyDown=${press}></textarea>`;
}

async function read(api, query, rows, signal) {
  const assumptions = await givenBy(api, rows, signal);
  const begin = performance.now();
  const found = await endpoints.candidates(api, query, assumptions?.given, signal);
  return { found, assumptions, took: performance.now() - begin };
}

function Shown({ found, assumptions, took, query, rows }) {
  const [isExplained, setExplained] = useState(false);
  const { allocation_requests: requests, provider_summaries: summaries, given } = found;
  const roots = new Set(Object.values(summaries).map((summary) => summary.root_provider_uuid));
  const title = requests.length
    ? `${counted(requests.length, "candidate")} from ${counted(roots.size, "tree")}`
    : "No candidate";
  const plan = withAsIf({ goal: "fit", query, amount: 1 }, rows);
  return html`<${Panel} name="found"
    aside=${requests.length > 0 && html`<${BarLegend} hasWanted />`}
    title=${html`<span role="status">
      ${title}<span class="fine"> in ${milliseconds(took)}</span></span>`}>
    <${Assumptions} rows=${rows} placed=${given?.placed} />
    ${requests.length > 0 && html`
      <${Candidates} found=${found} query=${query} made=${assumptions?.made ?? []} />
      ${!assumptions && html`<div class="controls">
        <button type="button" aria-expanded=${isExplained}
          onClick=${() => setExplained(!isExplained)}>Why not more trees?</button></div>`}`}
    ${!requests.length && html`<p class="ways">
      <a href=${address("plan", "", plan)}>Plan moves that make room for it</a></p>`}
    ${(isExplained || !requests.length) && html`
      <${Loaded} what="the explanation"
        load=${(api, signal) => explain(api, query, assumptions?.given, signal)}
        show=${(value) => value.document && html`<${Explanation} ...${value} />`} />`}
  <//>`;
}

async function explain(api, query, given, signal) {
  const [document, names] = await Promise.all([
    endpoints.explanation(api, query, given, signal), endpoints.aggregateNames(api, signal),
  ]);
  return { document, names };
}

function Candidates({ found, query, made }) {
  const [shown, setShown] = useState(AT_ONCE);
  const { allocation_requests: requests, provider_summaries: summaries, scores } = found;
  const visible = requests.slice(0, shown);
  const rootsOf = ({ allocations }) =>
    [...new Set(Object.keys(allocations).map((uuid) => summaries[uuid].root_provider_uuid))];
  const roots = [...new Set(visible.flatMap(rootsOf))].sort();
  const readTrees = async (api, signal) => {
    const parts = ["inventories", "usages", "traits"];
    const rows = await endpoints.providersOfTrees(api, roots, parts, signal);
    return Map.groupBy([...rows, ...made].map((row) => withUsages(row, own(summaries, row.uuid))),
      (row) => row.root_provider_uuid);
  };
  const sought = useMemo(() => traitsOf(query), [query]);
  return html`<${Loaded} load=${readTrees} on=${[roots.join()]} what="the trees of the candidates"
    show=${(byRoot) => html`
    <ol class="candidates">${visible.map((candidate, index) => html`
      <${Candidate} key=${index} rank=${index + 1} candidate=${candidate} sought=${sought}
        score=${scores?.[index] ?? null}
        providers=${rootsOf(candidate).flatMap((root) => byRoot.get(root) ?? [])} />`)}</ol>
    <${More} shown=${shown} count=${requests.length} step=${2 * AT_ONCE}
      onMore=${setShown} />`} />`;
}

/** A provider with the usages of an answer, which may be those under assumptions. */
const withUsages = (row, summary) => (summary ? { ...row, usages: Object.fromEntries(
  Object.entries(summary.resources).map(([name, { used }]) => [name, used])) } : row);

/** The traits that a query names, without their signs and weights. */
const traitsOf = (query) => new Set(readQuery(query).groups.flatMap(({ traits }) => traits)
  .flatMap(({ name }) => name.split(",")).map((name) => name.replace(/^!|\*.*$/g, "")));

/**
 * @param {number} rank Place in the answer, from 1.
 * @param {object} candidate An allocation request, with its mappings.
 * @param {number|null} score If the query has an order.
 * @param {object[]} providers All providers of its trees.
 * @param {Set<string>} sought Traits in the query.
 */
function Candidate({ rank, candidate, score, providers, sought }) {
  const { wanted, trees } = useMemo(() => {
    const taken = new Map(Object.entries(candidate.allocations)
      .map(([uuid, { resources }]) => [uuid, resources]));
    const tops = grown(providers).map((top) => pruned(top, ({ uuid }) => taken.has(uuid)));
    return { wanted: taken, trees: tops.filter(Boolean) };
  }, [providers, candidate]);
  const marks = { wanted, sought, isBrief: true };
  return html`<li class="candidate">
    <div class="candidate-head">
      <span class="rank" aria-hidden="true">${rank}</span>
      <h3><span class="sr">Candidate ${rank}: </span>
        ${trees.length ? trees.map(({ provider: { uuid, name } }, index) => html`
          ${index > 0 && " + "}<a href=${treeAddress(uuid)}>${name}</a>`)
          : [...wanted.keys()].join(", ")}</h3>
      ${score !== null && html`<span class="score" title="Score, of 1">
        <meter min="0" max="1" value=${score} aria-label="Score"></meter> ${score.toFixed(3)}
      </span>`}
    </div>
    <${Mappings} candidate=${candidate} providers=${providers} />
    <div class="drawn">${trees.map((node) => html`
      <${ProviderBox} key=${node.provider.uuid} node=${node} marks=${marks} />`)}</div>
  </li>`;
}

function Mappings({ candidate: { allocations, mappings = {} }, providers }) {
  const nameOf = (uuid) => providers.find((row) => row.uuid === uuid)?.name ?? uuid;
  const groups = Object.entries(mappings);
  const taken = Object.values(allocations);
  const words = `takes from ${counted(taken.length, "provider")}: `
    + taken.map(({ resources }) => amounts(resources)).join("; ");
  return html`<p class="fine mappings">${groups.some(([suffix]) => suffix)
    ? groups.map(([suffix, uuids]) => html`<span key=${suffix}>
        <code>${suffix || "(unsuffixed)"}</code> → ${uuids.map(nameOf).join(", ")}</span>`)
    : html`<span>${words}</span>`}</p>`;
}

/** @param {Record<string, string>} forms Texts by purpose. */
function Snippets({ forms }) {
  const [title, setTitle] = useState("");
  const [message, setMessage] = useState("");
  const show = async (name) => {
    setTitle(title === name ? "" : name);
    // Browsers allow it on HTTPS and on this machine only.
    const isCopied = await navigator.clipboard?.writeText(forms[name])
      .then(() => true, () => false);
    setMessage(isCopied ? `${name}: copied` : "Select the text and copy it");
  };
  return html`<div class="snippets">
    <div class="controls"><span class="fine">Copy as</span>
      ${Object.keys(forms).map((name) => html`<button key=${name} type="button"
        aria-expanded=${title === name} onClick=${() => show(name)}>${name}</button>`)}
      <span class="copied" role="status">${title && message}</span></div>
    ${title && html`<pre tabindex="0" aria-label=${title}>${forms[title]}</pre>`}
  </div>`;
}
