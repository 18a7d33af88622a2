// SPDX-License-Identifier: Apache-2.0
/** Notices in place of an answer: loading, empty, or failed. */

import { Trouble } from "../api/errors.js";
import { AsIfError } from "../model/as_if.js";
import { FlavorError } from "../model/flavors.js";
import { own } from "../model/texts.js";
import { html, useAnswer } from "./html.js";

export const Empty = ({ title, children }) => html`
  <div class="empty"><h2>${title}</h2>${children}</div>`;

const TITLES = {
  [Trouble.LOST]: "The server does not answer",
  [Trouble.HIDDEN]: "You may not see this",
  [Trouble.MISSING]: "This server does not support this",
  [Trouble.BUSY]: "The server is busy",
  [Trouble.FAILED]: "The server failed",
  [Trouble.WRONG]: "The server refused this",
  [Trouble.REFUSED]: "The token was refused",
};

const LONG = 400;
/* Characters of a message that are shown at once; some servers send a whole schema. */

/**
 * What went wrong; mistakes of the user have no title.
 *
 * @param {Error} error
 * @param {string} what The object that could not be read.
 * @param {() => void} again Tries again; null without such a button.
 * @param {{to: string, text: string}|null} back A link to a place that exists.
 */
export function Failure({ error, what, again = null, back = null }) {
  if (error instanceof AsIfError || error instanceof FlavorError) {
    return html`<p class="notice failure" role="alert">${error.message}</p>`;
  }
  if (error.kind === undefined) console.error(error);
  const message = error.message.split("\n").map((line) => line.trim()).filter(Boolean).join(" ");
  return html`<div class="notice failure" role="alert">
    <h2>${own(TITLES, error.kind) ?? "Something went wrong in this page"}</h2>
    <p>${what.replace(/^./, (first) => first.toUpperCase())}:
      ${" "}${message.length > LONG ? `${message.slice(0, LONG)}…` : message}</p>
    ${message.length > LONG && html`
      <details><summary>Complete message</summary><p>${message}</p></details>`}
    ${error.kind === Trouble.HIDDEN && html`
      <p>The policy of this service does not permit it to your roles.</p>`}
    ${(again || back) && html`<p class="ways">
      ${again && html`<button type="button" onClick=${again}>Try again</button>`}
      ${back && html` <a href=${back.to}>${back.text}</a>`}</p>`}
  </div>`;
}

/**
 * An answer: what went wrong, that it is being read, or what `show` makes of its value.
 *
 * @param {object} of As `useAnswer` returns it.
 * @param {string} what The object that is read, for messages.
 * @param {(value: any) => any} show Called with the value; the last value stays after a failure.
 * @param {{to: string, text: string}|null} back For a failure.
 */
export function Answer({ of: { value, error, again }, what, show, back = null }) {
  if (value === undefined && !error) {
    return html`<p class="busy" role="status">Reading ${what} …</p>`;
  }
  return html`${error && html`<${Failure} ...${{ error, what, again, back }} />`}
    ${value !== undefined && show(value)}`;
}

/**
 * An answer that is read when this is shown, and again when one of `on` changes.
 *
 * @param {(api: Client, signal: AbortSignal) => Promise<any>} load Reads it; `rest` as for Answer.
 */
export const Loaded = ({ load, on = [], ...rest }) =>
  html`<${Answer} of=${useAnswer(load, on)} ...${rest} />`;
