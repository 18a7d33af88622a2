// SPDX-License-Identifier: Apache-2.0
/** Which hosts, or racks, may be lost: a map, and the worst first (contract page 101, section 4). */

import * as endpoints from "../api/endpoints.js";
import { Taken } from "../components/as_if.js";
import { AddressForm, choiceOf } from "../components/fields.js";
import { Explanation } from "../components/funnel.js";
import { EACH, grouped } from "../components/grouping.js";
import { Heading } from "../components/heading.js";
import { html, useAnswer, useMemo, useState } from "../components/html.js";
import { SignLegend } from "../components/load_legend.js";
import { Busy, Failure, Mistake } from "../components/notices.js";
import { useSigns } from "../components/signs.js";
import { TreeMap } from "../components/tree_map.js";
import { AsIfError, givenBy, listed, withAsIf } from "../model/as_if.js";
import { Cloud } from "../model/cloud.js";
import { NONE, OVER, UNSURE } from "../model/colours.js";
import { aggregateName, count, counted, milliseconds, shortened } from "../model/numbers.js";
import { address, consumerAddress, treeAddress } from "../routes.js";

const TREES = "tree";
const MOST_DOMAINS = 1000;
const MOST_LISTED = 10_000;
/* Bounds of one call: of aggregates, and of domains that it lists. */

const AT_ONCE = 50;
/* Rows shown; more on demand. */

export function SurvivalPage({ route }) {
  const { choice, rows } = choiceOf(route);
  const [turn, setTurn] = useState(0);
  const domains = choice.domains ?? TREES;
  return html`<${Heading} title="Survival"><p class="summary">Would all consumers of a lost host or rack find a place elsewhere?</p><//>
    <${AddressForm} key=${route.query} page="survival" rows=${rows} verb="Check" onAgain=${() => setTurn(turn + 1)}>
      <label>Lost domains <select name="domains" defaultValue=${domains}>
        ${[[TREES, "each tree"], [EACH, "each aggregate"], ...[TREES, EACH].includes(domains) ? [] : [[domains, shortened(domains)]]]
          .map(([value, title]) => html`<option key=${value} value=${value} selected=${value === domains}>${title}</option>`)}</select></label>
      <label>Only types <input name="types" defaultValue=${choice.types ?? ""} placeholder="e.g. INSTANCE" spellcheck=${false} /></label>
      <label>From holds <input name="holds" defaultValue=${choice.holds ?? ""} placeholder="UUIDs (default: none)" spellcheck=${false} /></label>
    <//>
    ${choice.domains && html`<${Found} key=${`${route.query} ${turn}`} choice=${choice} rows=${rows} />`}`;
}

function Found({ choice, rows }) {
  const { value, error, again } = useAnswer((api, signal) => read(api, choice, rows, signal), []);
  if (error instanceof AsIfError) return html`<${Mistake} error=${error} />`;
  if (error) return html`<${Failure} error=${error} what="The survival check" again=${again} />`;
  if (!value) return html`<${Busy} what="the survival check" />`;
  return html`<${Shown} ...${value} choice=${choice} rows=${rows} />`;
}

async function read(api, { domains, types, holds }, rows, signal) {
  const supposed = await givenBy(api, rows, signal);
  const totals = await endpoints.totalsByTree(api, {}, signal, supposed?.given);
  const cloud = new Cloud(totals, await endpoints.pools(api, null, signal), signal);
  if (domains !== TREES) await cloud.group(api);
  for (const { uuid, parent_provider_uuid: parent, aggregates } of supposed?.made ?? []) {
    if (!parent) cloud.aggregatesOf?.set(uuid, aggregates);
  }
  const asked = domains === TREES ? TREES : domains === EACH ? [...new Set([...cloud.aggregatesOf.values()].flat())] : [domains];
  if (!asked.length) throw new AsIfError("No host is in an aggregate.");
  if (asked.length > MOST_DOMAINS && asked !== TREES) throw new AsIfError(`${count(asked.length)} aggregates; at most ${count(MOST_DOMAINS)} can be examined, or a single one by its UUID.`);
  const begin = performance.now();
  const told = await endpoints.survival(api, {
    domains: asked, limit: MOST_LISTED, all: true, explain: true,
    ...types && { consumer_types: listed(types) }, ...holds && { from_holds: listed(holds) }, ...supposed && { given: supposed.given },
  }, signal);
  return { cloud, told, took: performance.now() - begin };
}

function Shown({ cloud, told, took, choice, rows }) {
  const { hasSigns, signed, failure } = useSigns();
  const byUuid = useMemo(() => new Map(told.domains.map((domain) => [domain.uuid, domain])), [told]);
  const isTrees = choice.domains === TREES;
  const worst = ({ domain }) => byUuid.get(domain)?.unplaced ?? -1;
  const groups = useMemo(() => grouped(cloud.trees, isTrees ? "" : choice.domains, cloud.aggregatesOf, cloud.names).map((group) =>
    (byUuid.has(group.domain) ? { ...group, title: `${group.title}: ${lookOf(byUuid.get(group.domain)).words}` } : group))
    .sort((one, other) => worst(other) - worst(one)), [cloud]);
  const nameOf = ({ name, uuid }) => name ?? aggregateName(cloud.names, uuid);
  const lost = told.domains.filter(({ survives }) => !survives);
  const noun = isTrees ? "tree" : "aggregate";
  const look = (tree, { domain } = {}) => signed(lookOf(byUuid.get(isTrees ? tree.uuid : domain)), tree);
  return html`<section class="panel" aria-labelledby="survival-title">
    <div class="panel-head"><h2 id="survival-title"><span role="status" class=${told.fail ? "bad" : told.unknown ? "" : "good"}>${headingOf(told, noun)}
      <span class="fine"> in ${milliseconds(took)}</span></span></h2>
      <${SurvivalLegend} hasSigns=${hasSigns} /></div>
    <p class="quieter">${count(told.survive)} may be lost, ${count(told.fail)} cannot be lost, ${count(told.unknown)} unknown. ${told.unknown > 0
      && html`The outcome is unknown where a consumer has no valid request${!told.complete && ", and where the time ran out"}.`}</p>
    ${rows.length > 0 && html`<${Taken} rows=${rows} placed=${told.given?.placed} />`}
    ${failure}
    <${TreeMap} label="Map of what may be lost" groups=${groups} look=${look} onOpen=${(tree) => { location.hash = treeAddress(tree.uuid); }} />
  </section>
  ${lost.length > 0 && html`<section class="panel" aria-labelledby="worst-title">
    <div class="panel-head"><h2 id="worst-title">Worst first</h2></div><${Worst} domains=${lost} isTrees=${isTrees} rows=${rows} choice=${choice} nameOf=${nameOf} /></section>`}
  ${lost[0]?.explanation && html`<section class="panel" aria-labelledby="why-title">
    <div class="panel-head"><h2 id="why-title">Why ${nameOf(lost[0])} cannot be lost</h2>
      <p class="fine">The first consumer without a place: <a class="mono" href=${consumerAddress(lost[0].first_unplaced)}>${shortened(lost[0].first_unplaced)}</a></p></div>
    <${Explanation} told=${lost[0].explanation} query="" names=${cloud.names} /></section>`}`;
}

/** Say which of three outcomes there are: a heading is never a good one while an outcome is unknown. */
function headingOf({ of, fail, unknown }, noun) {
  if (fail) return `${count(fail)} of ${counted(of, noun)} cannot be lost`;
  if (unknown) return `It is unknown whether ${count(unknown)} of ${counted(of, noun)} may be lost`;
  return `Each of ${counted(of, noun)} may be lost`;
}

function lookOf(domain) {
  if (!domain) return { step: NONE, figure: "–", name: "", words: "not examined" };
  const { survives, proven, unplaced, consumers, without_request: unknown } = domain;
  const placed = consumers - unknown;
  const more = unknown ? `; ${counted(unknown, "consumer")} without a valid request` : "";
  if (survives === null) return { step: UNSURE, figure: count(unknown), name: "unknown", words: `unknown: ${counted(unknown, "consumer")} of ${count(consumers)} without a valid request` };
  if (!survives) {
    const doubt = proven ? "" : ", in the order tried";
    return { step: OVER, figure: count(unplaced), name: "unplaced", words: `${count(unplaced)} of ${counted(placed, "consumer")} would find no place${doubt}${more}` };
  }
  const words = placed ? `all of ${counted(placed, "consumer")} would find a place` : "no consumer needs a place";
  return { step: placed ? 2 : 0, figure: count(placed), name: "placed", words };
}

const SurvivalLegend = ({ hasSigns }) => html`<ul class="legend loads" aria-label="Colours of the map">
  ${[["step-0", "no consumers"], ["step-2", "may be lost"], ["over slashed", "cannot be lost"], ["unsure slashed", "unknown"]].map(([colour, name]) =>
    html`<li key=${name}><span class=${`swatch ${colour}`}></span>${name}</li>`)}
  ${hasSigns && html`<${SignLegend} />`}
</ul>`;

function Worst({ domains, isTrees, rows, choice, nameOf }) {
  const [shown, setShown] = useState(AT_ONCE);
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Domains that cannot be lost, or are unknown"><table class="worst">
    <caption>${counted(domains.length, isTrees ? "tree" : "aggregate")}; ${count(Math.min(shown, domains.length))} shown</caption>
    <thead><tr><th scope="col">${isTrees ? "Tree" : "Aggregate"}</th><th scope="col" class="number">Without a place</th><th scope="col" class="number">Consumers</th>
      <th scope="col" class="number">Without a request</th><th scope="col">First without a place</th><th scope="col">Proven</th></tr></thead>
    <tbody>${domains.slice(0, shown).map((domain) => html`<tr key=${domain.uuid}>
      <th scope="row"><a href=${isTrees ? treeAddress(domain.uuid) : whyAddress(domain, choice, rows)} title=${domain.uuid}>${nameOf(domain)}</a></th>
      <td class="number"><strong class=${domain.unplaced ? "bad" : ""}>${count(domain.unplaced)}</strong></td><td class="number">${count(domain.consumers)}</td>
      <td class="number">${count(domain.without_request)}</td>
      <td>${domain.first_unplaced && html`<a class="mono" href=${consumerAddress(domain.first_unplaced)} title=${domain.first_unplaced}>${shortened(domain.first_unplaced)}</a>`}</td>
      <td>${domain.survives === null ? "unknown" : domain.proven ? "yes" : "only in the order tried"}</td></tr>`)}</tbody></table>
    ${shown < domains.length && html`<button type="button" onClick=${() => setShown(shown + 4 * AT_ONCE)}>Show ${count(Math.min(4 * AT_ONCE, domains.length - shown))} more</button>`}
  </div>`;
}

/** The same question of one aggregate, which has an explanation then. */
const whyAddress = ({ uuid }, choice, rows) => address("survival", "", withAsIf(new URLSearchParams({ ...choice, domains: uuid }).toString(), rows));
