// SPDX-License-Identifier: Apache-2.0
/** One consumer, or those of a project, a user or a type: their allocations, and where they are. */

import { nextOf } from "../api/client.js";
import * as endpoints from "../api/endpoints.js";
import { ifAllowed } from "../api/errors.js";
import { fieldsOf } from "../components/as_if.js";
import { Holdings } from "../components/holdings.js";
import { html, useState } from "../components/html.js";
import { Heading } from "../components/layout.js";
import { Empty, Loaded } from "../components/notices.js";
import { counted } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { amounts } from "../model/trees.js";
import { address } from "../routes.js";

const PAGE = 100;
const ALL = { to: address("consumers"), text: "All consumers" };
const FIELDS = [
  ["consumer", "Consumer", "UUID"], ["project_id", "Project", ""], ["user_id", "User", ""],
  ["consumer_type", "Type", "e.g. INSTANCE"],
];

export function ConsumersPage({ route: { item, query } }) {
  const filters = Object.fromEntries(new URLSearchParams(query));
  if (item) filters.consumer = item;
  const key = JSON.stringify(filters);
  const submit = (event) => {
    event.preventDefault();
    location.hash = address("consumers", "", fieldsOf(event.target));
  };
  return html`<${Heading} title="Consumers" summary="Consumers and their allocations" />
    <form key=${`form ${key}`} class="panel" onSubmit=${submit}>
      <div class="controls consumer-filters">
        ${FIELDS.map(([name, title, placeholder]) => html`<label key=${name}>${title}
          <input name=${name} value=${own(filters, name) ?? ""} spellcheck=${false}
            placeholder=${placeholder} /></label>`)}
        <button type="submit" class="primary">Show</button></div></form>
    <${Found} key=${key} filters=${filters} />`;
}

function Found({ filters }) {
  const [markers, setMarkers] = useState([null]);
  const marker = markers.at(-1);
  return html`<${Loaded} what="the consumers" back=${ALL} on=${[marker]}
    load=${(api, signal) => read(api, { ...filters, limit: PAGE, marker }, signal)}
    show=${({ consumers, providers, next }) => {
      if (!consumers.length) return html`<${Nothing} isFiltered=${Object.keys(filters).length} />`;
      const isPaged = next !== null || markers.length > 1;
      const number = counted(consumers.length, "consumer");
      // An amount of one page would look like that of all pages.
      const caption = isPaged ? `${number} on this page` : `${number}: ${amounts(sum(consumers))}`;
      return html`<section class="panel" aria-label="Consumers found">
        <${Holdings} consumers=${consumers} providers=${providers} caption=${caption} />
        ${isPaged && html`<div class="controls pager">
          <button type="button" disabled=${markers.length < 2}
            onClick=${() => setMarkers(markers.slice(0, -1))}>Previous</button>
          <button type="button" disabled=${!next}
            onClick=${() => setMarkers([...markers, next])}>Next</button></div>`}
      </section>`;
    }} />`;
}

const Nothing = ({ isFiltered }) => html`<${Empty} title="No consumers"><p>${isFiltered
  ? html`No consumer passes these filters. <a href=${ALL.to}>${ALL.text}</a>`
  : "There are no claims in this cloud."}</p><//>`;

async function read(api, query, signal) {
  const page = await endpoints.consumers(api, query, signal);
  const uuids = page.consumers.flatMap(({ allocations }) => Object.keys(allocations));
  const providers = endpoints.providersByUuid(api, [...new Set(uuids)], signal);
  const rows = await ifAllowed(providers, []);
  return {
    consumers: page.consumers, next: nextOf(page),
    providers: new Map(rows.map((row) => [row.uuid, row])),
  };
}

/** Sum the amounts of consumers by class. */
function sum(consumers) {
  const sums = new Map();
  const resources = consumers.flatMap(({ allocations }) => Object.values(allocations))
    .flatMap((allocation) => Object.entries(allocation.resources));
  for (const [name, amount] of resources) sums.set(name, (sums.get(name) ?? 0) + amount);
  return Object.fromEntries(sums);
}
