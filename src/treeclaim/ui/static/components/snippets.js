// SPDX-License-Identifier: Apache-2.0
/** Copies a query for other programs. */

import { html, useState } from "./html.js";

/** @param {Record<string, string>} forms Texts by what they are for. */
export function Snippets({ forms }) {
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
