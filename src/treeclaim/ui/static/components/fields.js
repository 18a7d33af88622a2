// SPDX-License-Identifier: Apache-2.0
/** Forms whose fields are the parameters of the address, with the switch between is and as if. */

import { splitAsIf, withAsIf } from "../model/as_if.js";
import { address } from "../routes.js";
import { AsIf } from "./as_if.js";
import { html, useState } from "./html.js";

/** Read the parameters of an address, and what it takes for granted. */
export function choiceOf(route) {
  const { query, rows } = splitAsIf(route.query);
  return { choice: Object.fromEntries(new URLSearchParams(query)), rows };
}

/**
 * @param {string} page Whose form it is.
 * @param {object[]} rows What the address takes for granted.
 * @param {string} verb What the button says.
 * @param {() => void} onAgain Called where the address has what was chosen already.
 */
export function AddressForm({ page, rows, verb, onAgain, children }) {
  const [asIf, setAsIf] = useState({ isOn: rows.length > 0, rows });
  const submit = (event) => {
    event.preventDefault();
    // Fields of what is taken for granted have no name.
    const given = [...new FormData(event.target)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value);
    const next = address(page, "", withAsIf(new URLSearchParams(given).toString(), asIf.isOn ? asIf.rows : []));
    if (next === location.hash) onAgain();
    else location.hash = next;
  };
  return html`<form class="panel ask" onSubmit=${submit}>
    <div class="controls fields">${children}</div>
    <${AsIf} asIf=${asIf} onChange=${setAsIf} />
    <div class="controls"><button type="submit" class="primary">${verb}</button></div>
  </form>`;
}
