// SPDX-License-Identifier: Apache-2.0
/** What a page says where it has nothing to show. */

import { Trouble } from "../api/errors.js";
import { own } from "../model/texts.js";
import { html } from "./html.js";

export const Busy = ({ what }) => html`<p class="busy" role="status">Reading ${what} …</p>`;

export const Empty = ({ title, children }) => html`
  <div class="empty"><h2>${title}</h2>${children}</div>`;

const TITLES = {
  [Trouble.LOST]: "The server does not answer",
  [Trouble.HIDDEN]: "You may not see this",
  [Trouble.MISSING]: "This server does not have that yet",
  [Trouble.BUSY]: "The server is busy",
  [Trouble.FAILED]: "The server failed",
  [Trouble.WRONG]: "The server refused this",
  [Trouble.REFUSED]: "The token was refused",
};

const MORE = {
  [Trouble.HIDDEN]: "The policy of this service hides it from your roles. Another token may see it.",
};

/** Says what went wrong. */
export function Failure({ error, what, again }) {
  if (error.kind === undefined) console.error(error);
  return html`<div class="notice failure" role="alert">
    <h2>${own(TITLES, error.kind) ?? "Something went wrong in this page"}</h2>
    <p>${what && `${what}: `}${error.message}</p>
    ${own(MORE, error.kind) && html`<p>${own(MORE, error.kind)}</p>`}
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}
