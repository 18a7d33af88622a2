// SPDX-License-Identifier: Apache-2.0
/** One consumer, or those of a project: what they hold, and where. */

import { nextOf } from "../api/client.js";
import * as endpoints from "../api/endpoints.js";
import { Trouble } from "../api/errors.js";
import { Heading } from "../components/heading.js";
import { Holdings } from "../components/holdings.js";
import { html, useAnswer, useState } from "../components/html.js";
import { Busy, Empty, Failure } from "../components/notices.js";
import { counted } from "../model/numbers.js";
import { amounts } from "../model/trees.js";
import { own } from "../model/texts.js";
import { address } from "../routes.js";

const PAGE = 100;
const ALL = { to: address("consumers"), text: "All consumers" };
const FILTERS = { consumer: "Consumer", project_id: "Project", user_id: "User", consumer_type: "Type" };

export function ConsumersPage({ route }) {
  const filters = Object.fromEntries(new URLSearchParams(route.query));
  if (route.item) filters.consumer = route.item;
  const key = JSON.stringify(filters);
  return html`<${Heading} title="Consumers"><p class="summary">Consumers and their allocations</p><//>
    <${Filters} key=${`form ${key}`} filters=${filters} />
    <${Found} key=${key} filters=${filters} />`;
}

function Filters({ filters }) {
  const submit = (event) => {
    event.preventDefault();
    const given = [...new FormData(event.target)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value);
    location.hash = address("consumers", "", Object.fromEntries(given));
  };
  return html`<form class="panel" onSubmit=${submit}><div class="controls consumer-filters">
    ${Object.entries(FILTERS).map(([name, title]) => html`<label key=${name}>${title}
      <input name=${name} value=${own(filters, name) ?? ""} spellcheck=${false} placeholder=${name === "consumer_type" ? "e.g. INSTANCE" : name === "consumer" ? "UUID" : ""} /></label>`)}
    <button type="submit" class="primary">Show</button></div></form>`;
}

function Found({ filters }) {
  const [markers, setMarkers] = useState([null]);
  const marker = markers.at(-1);
  const { value, error, again } = useAnswer((api, signal) => read(api, { ...filters, limit: PAGE, marker }, signal), [marker]);
  if (error) return html`<${Failure} error=${error} what="The consumers" again=${again} back=${ALL} />`;
  if (!value) return html`<${Busy} what="the consumers" />`;
  const { consumers, providers, next } = value;
  if (!consumers.length) {
    return html`<${Empty} title="No consumers"><p>${Object.keys(filters).length
      ? html`No consumer passes these filters. <a href=${ALL.to}>${ALL.text}</a>` : "There are no claims in this cloud."}</p><//>`;
  }
  const caption = `${counted(consumers.length, "consumer")}${next || markers.length > 1 ? " on this page" : ""}: ${amounts(sum(consumers))}`;
  return html`<section class="panel" aria-label="Consumers found">
    <${Holdings} consumers=${consumers} providers=${providers} caption=${caption} />
    ${(next || markers.length > 1) && html`<div class="controls pager">
      <button type="button" disabled=${markers.length < 2} onClick=${() => setMarkers(markers.slice(0, -1))}>Previous</button>
      <button type="button" disabled=${!next} onClick=${() => setMarkers([...markers, next])}>Next</button></div>`}
  </section>`;
}

async function read(api, query, signal) {
  const answer = await endpoints.consumers(api, query, signal);
  const uuids = [...new Set(answer.consumers.flatMap(({ allocations }) => Object.keys(allocations)))];
  let rows = [];
  try {
    rows = await endpoints.providersByUuid(api, uuids, signal);
  } catch (error) {
    if (error.kind !== Trouble.HIDDEN) throw error;
  }
  return { consumers: answer.consumers, next: nextOf(answer), providers: new Map(rows.map((row) => [row.uuid, row])) };
}

function sum(consumers) {
  const found = new Map();
  for (const { allocations } of consumers) {
    for (const { resources } of Object.values(allocations)) {
      for (const [name, amount] of Object.entries(resources)) found.set(name, (found.get(name) ?? 0) + amount);
    }
  }
  return Object.fromEntries(found);
}
