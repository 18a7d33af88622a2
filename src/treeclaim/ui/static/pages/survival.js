// SPDX-License-Identifier: Apache-2.0
/** Survival of the loss of hosts or racks: a map, and the worst losses (contract page 101). */

import * as endpoints from "../api/endpoints.js";
import { AddressForm, Assumptions, choiceOf } from "../components/as_if.js";
import { Explanation } from "../components/funnel.js";
import { EACH, grouped } from "../components/grouping.js";
import { html, useCallback, useMemo, useState } from "../components/html.js";
import { ConsumerLink, Heading, MapLegend, Panel, Select } from "../components/layout.js";
import { Loaded } from "../components/notices.js";
import { useConditions } from "../components/signs.js";
import { Table } from "../components/table.js";
import { TreeMap } from "../components/tree_map.js";
import { AsIfError, givenBy, listed, withAsIf } from "../model/as_if.js";
import { Cloud } from "../model/cloud.js";
import { NONE, OVER, UNSURE } from "../model/colours.js";
import { aggregateName, count, counted, milliseconds, shortened } from "../model/numbers.js";
import { address, treeAddress } from "../routes.js";

const TREES = "tree";
const MOST_DOMAINS = 1000;
const MOST_LISTED = 10_000;
/* Bounds of one call: of aggregates, and of domains that it lists. */

export function SurvivalPage({ route }) {
  const { choice, rows } = choiceOf(route);
  const [turn, setTurn] = useState(0);
  const domains = choice.domains ?? TREES;
  const options = [[TREES, "each tree"], [EACH, "each aggregate"]];
  if (domains !== TREES && domains !== EACH) options.push([domains, shortened(domains)]);
  return html`<${Heading} title="Survival"
      summary="Would all consumers of a lost host or rack find a place elsewhere?" />
    <${AddressForm} key=${route.query} page="survival" rows=${rows} verb="Check"
      onAgain=${() => setTurn(turn + 1)}>
      <label>Lost domains <${Select} name="domains" value=${domains} options=${options} /></label>
      <label>Only types <input name="types" defaultValue=${choice.types ?? ""}
        placeholder="e.g. INSTANCE" spellcheck=${false} /></label>
      <label>From holds <input name="holds" defaultValue=${choice.holds ?? ""}
        placeholder="UUIDs (default: none)" spellcheck=${false} /></label><//>
    ${choice.domains && html`<${Loaded} key=${`${route.query} ${turn}`} what="the survival check"
      load=${(api, signal) => read(api, choice, rows, signal)}
      show=${(value) => html`<${Shown} ...${value} choice=${choice} rows=${rows} />`} />`}`;
}

async function read(api, { domains, types, holds }, rows, signal) {
  const assumptions = await givenBy(api, rows, signal);
  const totals = await endpoints.totals(api, { by: "tree" }, signal, assumptions?.given);
  const cloud = new Cloud(api, totals, signal);
  if (domains !== TREES) {
    await cloud.readPart("aggregates");
    for (const row of assumptions?.made ?? []) cloud.take("aggregates", row);
  }
  const body = {
    domains: domains === TREES ? TREES : aggregatesIn(cloud, domains),
    limit: MOST_LISTED, all: true, explain: true,
    ...types && { consumer_types: listed(types) },
    ...holds && { from_holds: listed(holds) },
    ...assumptions && { given: assumptions.given },
  };
  const begin = performance.now();
  const outcome = await api.post("/treeclaim/survival", body, signal);
  return { cloud, outcome, took: performance.now() - begin };
}

/** The aggregates to lose: one, or all that have a host. */
function aggregatesIn({ providers }, domains) {
  if (domains !== EACH) return [domains];
  const rows = [...providers.aggregates.values()];
  const all = [...new Set(rows.flatMap(({ aggregates }) => aggregates))];
  if (!all.length) throw new AsIfError("No host is in an aggregate.");
  if (all.length <= MOST_DOMAINS) return all;
  const most = `at most ${count(MOST_DOMAINS)} can be examined, or a single one by its UUID`;
  throw new AsIfError(`${count(all.length)} aggregates; ${most}.`);
}

function Shown({ cloud, outcome, took, choice, rows }) {
  const { conditions, failure } = useConditions();
  const isTrees = choice.domains === TREES;
  const { byUuid, groups } = useMemo(() => {
    const domains = new Map(outcome.domains.map((domain) => [domain.uuid, domain]));
    const worst = ({ domain }) => domains.get(domain)?.unplaced ?? -1;
    const all = grouped(cloud.trees, isTrees ? "" : choice.domains, cloud).map((group) => {
      const domain = domains.get(group.domain);
      return domain ? { ...group, title: `${group.title}: ${lookOf(domain).words}` } : group;
    });
    return { byUuid: domains, groups: all.sort((one, other) => worst(other) - worst(one)) };
  }, [cloud]);
  const nameOf = ({ name, uuid }) => name ?? aggregateName(cloud.names, uuid);
  const lost = outcome.domains.filter(({ survives }) => !survives);
  const [worst] = lost;
  const look = useCallback((tree, { domain }) =>
    lookOf(byUuid.get(isTrees ? tree.uuid : domain)), [byUuid]);
  const { survive, fail, unknown, complete, given } = outcome;
  const kind = fail ? "bad" : unknown || !outcome.of ? "" : "good";
  return html`<${Panel} name="survival" title=${html`<span role="status" class=${kind}>
      ${headingOf(outcome, isTrees)}<span class="fine"> in ${milliseconds(took)}</span></span>`}
    aside=${html`<${MapLegend} entries=${LEGEND} hasSigns=${conditions.size > 0} />`}>
    <p class="quieter">
      ${count(survive)} may be lost, ${count(fail)} cannot be lost, ${count(unknown)} unknown.
      ${unknown > 0 && html` The outcome is unknown where a consumer has no valid
        request${!complete && ", and where the time ran out"}.`}</p>
    <${Assumptions} rows=${rows} placed=${given?.placed} />
    ${failure}
    <${TreeMap} label="Map of what may be lost" groups=${groups} look=${look}
      conditions=${conditions} /><//>
  ${lost.length > 0 && html`<${Panel} name="worst" title="Worst first">
    <${Worst} domains=${lost} nameOf=${nameOf} noun=${nounOf(isTrees)}
      addressOf=${(uuid) => (isTrees ? treeAddress(uuid)
        : address("survival", "", withAsIf({ ...choice, domains: uuid }, rows)))} /><//>`}
  ${worst?.explanation && html`<${Panel} name="why" title=${`Why ${nameOf(worst)} cannot be lost`}
    aside=${html`<p class="fine">The first consumer without a place:
      ${" "}<${ConsumerLink} uuid=${worst.first_unplaced} /></p>`}>
    <${Explanation} document=${worst.explanation} names=${cloud.names} /><//>`}`;
}

const nounOf = (isTrees) => (isTrees ? "tree" : "aggregate");

/** The outcome of a check: never a good heading while an outcome is unknown. */
function headingOf({ of, fail, unknown }, isTrees) {
  const all = counted(of, nounOf(isTrees));
  if (fail) return `${count(fail)} of ${all} cannot be lost`;
  if (unknown) return `It is unknown whether ${count(unknown)} of ${all} may be lost`;
  return `Each of ${all} may be lost`;
}

function lookOf(domain) {
  if (!domain) return { colour: NONE, figure: "–", name: "", words: "not examined" };
  const { survives, proven, unplaced, consumers, without_request: unknown } = domain;
  const number = counted(unknown, "consumer");
  if (survives === null) {
    const words = `unknown: ${number} of ${count(consumers)} without a valid request`;
    return { colour: UNSURE, figure: count(unknown), name: "unknown", words };
  }
  const placed = consumers - unknown;
  if (!survives) {
    const words = `${count(unplaced)} of ${counted(placed, "consumer")} would find no place${
      proven ? "" : ", in the order tried"}${unknown ? `; ${number} without a valid request` : ""}`;
    return { colour: OVER, figure: count(unplaced), name: "unplaced", words };
  }
  const words = placed ? `all of ${counted(placed, "consumer")} would find a place`
    : "no consumer needs a place";
  return { colour: placed ? "step-2" : "step-0", figure: count(placed), name: "placed", words };
}

const LEGEND = [
  ["step-0", "no consumers"], ["step-2", "may be lost"], [OVER, "cannot be lost"],
  [UNSURE, "unknown"],
];

function Worst({ domains, nameOf, noun, addressOf }) {
  const title = noun.replace(/^./, (first) => first.toUpperCase());
  const columns = [
    { title, isHead: true, cell: (domain) => html`
      <a href=${addressOf(domain.uuid)} title=${domain.uuid}>${nameOf(domain)}</a>` },
    { title: "Without a place", kind: "number", cell: ({ unplaced }) => html`
      <strong class=${unplaced ? "bad" : ""}>${count(unplaced)}</strong>` },
    { title: "Consumers", kind: "number", cell: ({ consumers }) => count(consumers) },
    { title: "Without a request", kind: "number",
      cell: ({ without_request: without }) => count(without) },
    { title: "First without a place", cell: ({ first_unplaced: first }) => first && html`
      <${ConsumerLink} uuid=${first} />` },
    { title: "Proven", cell: ({ survives, proven }) => (survives === null ? "unknown"
      : proven ? "yes" : "only in the order tried") },
  ];
  return html`<${Table} label="Domains that cannot be lost, or are unknown" name="worst"
    columns=${columns} rows=${domains} keyOf=${({ uuid }) => uuid} atOnce=${50}
    caption=${(shown) => `${counted(domains.length, noun)}; ${count(shown)} shown`} />`;
}
