// SPDX-License-Identifier: Apache-2.0
/** What a page says where it has nothing to show. */

import { Trouble } from "../api/errors.js";
import { own } from "../model/texts.js";
import { html } from "./html.js";

export const Busy = ({ what }) => html`<p class="busy" role="status">Reading ${what} …</p>`;

export const Empty = ({ title, children }) => html`
  <div class="empty"><h2>${title}</h2>${children}</div>`;

/** Says what is wrong with what somebody entered. */
export const Mistake = ({ error }) => html`<p class="notice failure" role="alert">${error.message}</p>`;

const TITLES = {
  [Trouble.LOST]: "The server does not answer",
  [Trouble.HIDDEN]: "You may not see this",
  [Trouble.MISSING]: "This server does not support this",
  [Trouble.BUSY]: "The server is busy",
  [Trouble.FAILED]: "The server failed",
  [Trouble.WRONG]: "The server refused this",
  [Trouble.REFUSED]: "The token was refused",
};

const MORE = {
  [Trouble.HIDDEN]: "The policy of this service does not permit it to your roles.",
};

const LONG = 400;
/* Letters of a message that are shown at once; some servers send the schema along that was not met. */

/**
 * Says what went wrong.
 *
 * @param {{to: string, text: string}|null} back A place that is there.
 */
export function Failure({ error, what, again, back = null }) {
  if (error.kind === undefined) console.error(error);
  const message = error.message.split("\n").map((line) => line.trim()).filter(Boolean).join(" ");
  return html`<div class="notice failure" role="alert">
    <h2>${own(TITLES, error.kind) ?? "Something went wrong in this page"}</h2>
    <p>${what && `${what}: `}${message.length > LONG ? `${message.slice(0, LONG)}…` : message}</p>
    ${message.length > LONG && html`<details><summary>Complete message</summary><p>${message}</p></details>`}
    ${own(MORE, error.kind) && html`<p>${own(MORE, error.kind)}</p>`}
    ${(again || back) && html`<p class="ways">${again && html`<button type="button" onClick=${again}>Try again</button>`}
      ${back && html` <a href=${back.to}>${back.text}</a>`}</p>`}
  </div>`;
}
