// SPDX-License-Identifier: Apache-2.0
/** Asks for candidates, draws them, and says why where there are none. */

import { ENDPOINT } from "../api/client.js";
import * as endpoints from "../api/endpoints.js";
import { AsIf, Taken } from "../components/as_if.js";
import { BarLegend } from "../components/bar.js";
import { Candidate } from "../components/candidate.js";
import { Explanation } from "../components/funnel.js";
import { Heading } from "../components/heading.js";
import { html, useAnswer, useEffect, useMemo, useState } from "../components/html.js";
import { Busy, Failure, Mistake } from "../components/notices.js";
import { QueryForm } from "../components/query_form.js";
import { Snippets } from "../components/snippets.js";
import { AsIfError, givenBy, splitAsIf, withAsIf } from "../model/as_if.js";
import { counted, milliseconds } from "../model/numbers.js";
import { readQuery, writeQuery } from "../model/query.js";
import { asCurl, asCurlIf, asFlavor, asPython } from "../model/snippets.js";
import { own } from "../model/texts.js";
import { SHARING, countedTrees } from "../model/trees.js";
import { address } from "../routes.js";

const EXAMPLE = "resources=VCPU:4,MEMORY_MB:8192&limit=100";
const AT_ONCE = 8;
/* Candidates drawn at first, and with each further step. */

export function AskPage({ route }) {
  const asked = route.query;
  const [{ request, asIf }, setForm] = useState(() => formOf(asked));
  const [turn, setTurn] = useState(0);
  const setRequest = (next) => setForm({ request: next, asIf });
  const names = useAnswer((api, signal) => endpoints.names(api, signal), []);
  const query = writeQuery(request);
  const written = (chosen) => withAsIf(query, chosen.isOn ? chosen.rows : []);
  const text = written(asIf);
  useEffect(() => { if (asked !== text) setForm(formOf(asked)); }, [asked]);
  const submit = (event) => {
    event.preventDefault();
    if (text === asked) setTurn(turn + 1);
    else location.hash = address("ask", "", text);
  };
  const change = (chosen, isSwitched) => {
    setForm({ request, asIf: chosen });
    // A query that was submitted is submitted again at once.
    if (isSwitched && asked === text) location.hash = address("ask", "", written(chosen));
  };
  const { query: askedQuery, rows } = splitAsIf(asked);
  const forms = [
    { title: "curl", text: asCurl(ENDPOINT, query) },
    { title: "Python", text: asPython(ENDPOINT, query) },
    { title: "flavor extra specs", text: asFlavor(query) },
  ];
  return html`<${Heading} title="Ask"><p class="summary">Which combinations of providers can satisfy this request?</p><//>
    <form class="panel ask" onSubmit=${submit}>
      <${QueryForm} request=${request} names=${names.value ?? { traits: [], classes: [] }} onChange=${setRequest} />
      <label class="query-text"><span>Query</span>
        <${QueryText} query=${query} onChange=${(text) => setRequest(readQuery(text))} /></label>
      <${AsIf} asIf=${asIf} onChange=${change} />
      <div class="controls"><button type="submit" class="primary">Ask</button>
        ${asked && asked !== text && html`<span class="fine">changed since the last search</span>`}
        ${!asIf.isOn && html`<${Snippets} forms=${forms} />`}</div>
    </form>
    ${askedQuery && html`<${Found} key=${`${asked} ${turn}`} query=${askedQuery} rows=${rows} />`}`;
}

function formOf(asked) {
  const { query, rows } = splitAsIf(asked);
  return { request: readQuery(query || EXAMPLE), asIf: { isOn: rows.length > 0, rows } };
}

/** The query as text. While somebody types, the text stays as it was typed. */
function QueryText({ query, onChange }) {
  const [typed, setTyped] = useState(null);
  return html`<textarea rows="2" spellcheck=${false} value=${typed ?? query}
    onInput=${(event) => { setTyped(event.target.value); onChange(event.target.value); }}
    onBlur=${() => setTyped(null)}
    onKeyDown=${(event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); event.target.form.requestSubmit(); } }}></textarea>`;
}

function Found({ query, rows }) {
  const [isExplained, setExplained] = useState(false);
  const { value, error, again } = useAnswer(async (api, signal) => {
    const supposed = await givenBy(api, rows, signal);
    const begin = performance.now();
    const answer = await (supposed ? endpoints.candidatesIf(api, query, supposed.given, signal) : endpoints.candidates(api, query, signal));
    return { answer, supposed, took: performance.now() - begin };
  }, []);
  if (error instanceof AsIfError) return html`<${Mistake} error=${error} />`;
  if (error) return html`<${Failure} error=${error} what="The question" again=${again} back=${{ to: address("ask"), text: "Begin with an example" }} />`;
  if (!value) return html`<${Busy} what="the candidates" />`;
  const { supposed } = value;
  const found = value.answer.allocation_requests;
  const roots = rootsIn(value.answer.provider_summaries);
  return html`<section class="panel" aria-labelledby="found-title">
    <div class="panel-head"><h2 id="found-title"><span role="status">${found.length
      ? `${counted(found.length, "candidate")} from ${countedTrees(roots)}` : "No candidate"}
      <span class="fine"> in ${milliseconds(value.took)}</span></span></h2>
      ${found.length > 0 && html`<${BarLegend} hasWanted />`}</div>
    ${supposed && html`<${Taken} rows=${rows} placed=${value.answer.given?.placed} />
      <div class="controls"><${Snippets} forms=${[{ title: "curl", text: asCurlIf(ENDPOINT, query, supposed.given) }]} /></div>`}
    ${found.length > 0 && html`<${Candidates} answer=${value.answer} query=${query} made=${supposed?.made} />`}
    ${found.length > 0 && !supposed && html`<div class="controls">
      <button type="button" aria-expanded=${isExplained} onClick=${() => setExplained(!isExplained)}>Why not more trees?</button></div>`}
    ${!found.length && html`<p class="ways"><a href=${address("plan", "", withAsIf(new URLSearchParams({ goal: "fit", query, amount: 1 }).toString(), rows))}>Plan moves that make room for it</a></p>`}
    ${(isExplained || !found.length) && html`<${Why} query=${query} rows=${rows} given=${supposed?.given} />`}
  </section>`;
}

/** The roots of some providers, as countedTrees takes them. */
function rootsIn(summaries) {
  const roots = new Set(Object.values(summaries).map((summary) => summary.root_provider_uuid));
  return [...roots].map((uuid) => ({ uuid, isPool: Boolean(own(summaries, uuid)?.traits?.includes(SHARING)) }));
}

function Why({ query, rows, given }) {
  const { value, error, again } = useAnswer(async (api, signal) => {
    const why = given ? endpoints.explanationIf(api, query, given, signal) : endpoints.explanation(api, query, signal);
    const [told, pools, names] = await Promise.all([why, endpoints.pools(api, null, signal), endpoints.aggregateNames(api, signal)]);
    return { told: told && { ...told, hasPools: pools.size > 0 }, names };
  }, [query]);
  if (error) return html`<${Failure} error=${error} what="The explanation" again=${again} />`;
  if (!value) return html`<${Busy} what="the explanation" />`;
  return value.told && html`<${Explanation} ...${value} query=${query} rows=${rows} />`;
}

function Candidates({ answer, query, made = [] }) {
  const [shown, setShown] = useState(AT_ONCE);
  const { allocation_requests: requests, provider_summaries: summaries, scores } = answer;
  const some = requests.slice(0, shown);
  const rootsOf = (candidate) => [...new Set(Object.keys(candidate.allocations).map((uuid) => summaries[uuid].root_provider_uuid))];
  const roots = [...new Set(some.flatMap(rootsOf))].sort();
  const { value: providers, error } = useAnswer(async (api, signal) => {
    const rows = await endpoints.providersOfTrees(api, roots, ["inventories", "usages", "traits"], signal);
    return [...rows, ...made].map((row) => asAnswered(row, own(summaries, row.uuid)));
  }, [roots.join()]);
  const byRoot = useMemo(() => Map.groupBy(providers ?? [], (row) => row.root_provider_uuid), [providers]);
  const sought = useMemo(() => traitsOf(query), [query]);
  if (error) return html`<${Failure} error=${error} what="The trees of the candidates" />`;
  if (!providers) return html`<${Busy} what="the trees of the candidates" />`;
  return html`<ol class="candidates">
    ${some.map((candidate, index) => html`<${Candidate} key=${index} rank=${index + 1} candidate=${candidate}
      score=${scores?.[index] ?? null} sought=${sought} providers=${rootsOf(candidate).flatMap((root) => byRoot.get(root) ?? [])} />`)}
    </ol>
    ${shown < requests.length && html`<button type="button" onClick=${() => setShown(shown + 2 * AT_ONCE)}>Show ${Math.min(2 * AT_ONCE, requests.length - shown)} more</button>`}`;
}

/** A provider with what is used of it in an answer, which may be how things would be. */
const asAnswered = (row, summary) => (summary
  ? { ...row, usages: Object.fromEntries(Object.entries(summary.resources).map(([name, { used }]) => [name, used])) } : row);

const traitsOf = (query) => new Set(readQuery(query).groups.flatMap(({ traits }) => traits)
  .flatMap(({ name }) => name.split(",")).map((name) => name.replace(/^!|\*.*$/g, "")));
