// SPDX-License-Identifier: Apache-2.0
/** Who holds what, and where. */

import { counted, shortened } from "../model/numbers.js";
import { amounts } from "../model/trees.js";
import { address, consumerAddress, treeAddress } from "../routes.js";
import { html } from "./html.js";

/**
 * @param {object[]} consumers As GET /treeclaim/allocations lists them.
 * @param {Map<string, object>} providers What is known of the providers, by uuid.
 * @param {string} caption What the table shows.
 * @param {(uuid: string) => boolean} isHere Which providers are shown; all, where it is left out.
 */
export function Holdings({ consumers, providers, caption, isHere = () => true }) {
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${caption}>
    <table class="holdings">
      <caption>${caption}</caption>
      <thead><tr><th scope="col">Consumer</th><th scope="col">Type</th><th scope="col">Project</th><th scope="col">Allocations</th></tr></thead>
      <tbody>${consumers.map((consumer) => html`<tr key=${consumer.uuid}>
        <th scope="row"><a class="mono" href=${consumerAddress(consumer.uuid)} title=${consumer.uuid}>${shortened(consumer.uuid)}</a></th>
        <td>${consumer.consumer_type}</td>
        <td><a href=${address("consumers", "", { project_id: consumer.project_id })} title=${consumer.project_id}>${shortened(consumer.project_id)}</a></td>
        <td><${Held} consumer=${consumer} providers=${providers} isHere=${isHere} /></td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}

function Held({ consumer, providers, isHere }) {
  const all = Object.entries(consumer.allocations);
  const here = all.filter(([uuid]) => isHere(uuid));
  const elsewhere = all.length - here.length;
  return html`<ul class="held">
    ${here.map(([uuid, { resources }]) => {
      const provider = providers.get(uuid);
      return html`<li key=${uuid}>${amounts(resources)} <span class="quieter">of</span>${" "}
        <a href=${treeAddress(provider?.root_provider_uuid ?? uuid)}>${provider?.name ?? shortened(uuid)}</a></li>`;
    })}
    ${elsewhere > 0 && html`<li class="fine">and allocations at ${counted(elsewhere, "provider")} of other trees</li>`}
  </ul>`;
}
