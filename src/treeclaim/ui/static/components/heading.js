// SPDX-License-Identifier: Apache-2.0
/** The heading of a page, which takes the focus when the page is shown. */

import { html } from "./html.js";

export const Heading = ({ title, children }) => html`
  <div class="heading"><h1 tabindex="-1">${title}</h1>${children}</div>`;
