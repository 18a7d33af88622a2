// SPDX-License-Identifier: Apache-2.0
/** Consumers and their allocations. */

import { counted, shortened } from "../model/numbers.js";
import { amounts } from "../model/trees.js";
import { address, treeAddress } from "../routes.js";
import { html } from "./html.js";
import { ConsumerLink } from "./layout.js";
import { Table } from "./table.js";

/**
 * @param {object[]} consumers As GET /treeclaim/allocations lists them.
 * @param {Map<string, object>} providers What is known of the providers, by uuid.
 * @param {string} caption What the table shows.
 * @param {(uuid: string) => boolean} isHere Which providers are shown.
 */
export function Holdings({ consumers, providers, caption, isHere = () => true }) {
  const columns = [
    { title: "Consumer", isHead: true, cell: ({ uuid }) => html`<${ConsumerLink} uuid=${uuid} />` },
    { title: "Type", cell: ({ consumer_type: type }) => type },
    { title: "Project", cell: ({ project_id: project }) => html`
      <a href=${address("consumers", "", { project_id: project })} title=${project}>
        ${shortened(project)}</a>` },
    { title: "Allocations", cell: ({ allocations }) => html`
      <${Held} allocations=${allocations} providers=${providers} isHere=${isHere} />` },
  ];
  return html`<${Table} label=${caption} name="holdings" caption=${() => caption}
    columns=${columns} rows=${consumers} keyOf=${({ uuid }) => uuid} />`;
}

function Held({ allocations, providers, isHere }) {
  const all = Object.entries(allocations);
  const here = all.filter(([uuid]) => isHere(uuid));
  const elsewhere = all.length - here.length;
  return html`<ul class="held">
    ${here.map(([uuid, { resources }]) => {
      const { root_provider_uuid: root = uuid, name = shortened(uuid) } = providers.get(uuid) ?? {};
      return html`<li key=${uuid}>${amounts(resources)} <span class="quieter">of</span>${" "}
        <a href=${treeAddress(root)}>${name}</a></li>`;
    })}
    ${elsewhere > 0 && html`
      <li class="fine">and allocations at ${counted(elsewhere, "provider")} of other trees</li>`}
  </ul>`;
}
