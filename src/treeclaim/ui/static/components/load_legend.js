// SPDX-License-Identifier: Apache-2.0
/** What the colours of the map mean. */

import { STEP_NAMES } from "../model/colours.js";
import { html } from "./html.js";

export const SignLegend = () => html`<li><span class="sign" aria-hidden="true"></span>a provider has a condition</li>`;

/** @param {boolean} hasSigns Whether some trees have the sign of a condition. */
export const LoadLegend = ({ hasSigns = false }) => html`<ul class="legend loads" aria-label="Colours of the map">
  ${STEP_NAMES.map((name, step) => html`<li key=${name}><span class=${`swatch step-${step}`}></span>${name}</li>`)}
  <li><span class="swatch over slashed"></span>over</li>
  ${hasSigns && html`<${SignLegend} />`}
</ul>`;
