// SPDX-License-Identifier: Apache-2.0
/** Copies a question in other forms. */

import { html, useState } from "./html.js";

/** @param {{title: string, text: string}[]} forms What can be copied. */
export function Snippets({ forms }) {
  const [chosen, choose] = useState(null);
  const [told, tell] = useState("");
  const show = async (form) => {
    choose(chosen?.title === form.title ? null : form);
    tell(await copied(form.text) ? `${form.title}: copied` : "Select the text and copy it");
  };
  const text = chosen && forms.find(({ title }) => title === chosen.title)?.text;
  return html`<div class="snippets">
    <div class="controls"><span class="fine">Copy as</span>
      ${forms.map((form) => html`<button key=${form.title} type="button" aria-expanded=${chosen?.title === form.title} onClick=${() => show(form)}>${form.title}</button>`)}
      <span class="copied" role="status">${chosen ? told : ""}</span></div>
    ${text && html`<pre tabindex="0" aria-label=${chosen.title}>${text}</pre>`}
  </div>`;
}

/** Put text onto the clipboard, which browsers allow on HTTPS and on this machine only. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
