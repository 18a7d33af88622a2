// SPDX-License-Identifier: Apache-2.0
/** The pieces that pages are made of: headings, panels, switches, selections, legends, links. */

import { LOADS } from "../model/colours.js";
import { shortened } from "../model/numbers.js";
import { consumerAddress } from "../routes.js";
import { html } from "./html.js";

/** The heading of a page, which takes the focus when the page is shown. */
export const Heading = ({ title, summary, children }) => html`
  <div class="heading"><h1 tabindex="-1">${title}</h1>
    ${summary && html`<p class="summary">${summary}</p>`}${children}</div>`;

/**
 * A part of a page.
 *
 * @param {string} name Its name for screen readers refers to this; unique in the page.
 * @param {any} aside What stands beside the title.
 */
export const Panel = ({ name, title, aside = null, children }) => html`
  <section class="panel" aria-labelledby=${`${name}-title`}>
    <div class="panel-head"><h2 id=${`${name}-title`}>${title}</h2>${aside}</div>
    ${children}
  </section>`;

/** Buttons of which one is pressed; `options` has pairs of a value and its title. */
export const Switch = ({ label, options, value, onChoose }) => html`
  <div class="switch" role="group" aria-label=${label}>
    ${options.map(([option, title]) => html`<button key=${title} type="button"
      aria-pressed=${option === value} onClick=${() => onChoose(option)}>${title}</button>`)}
  </div>`;

/**
 * A selection.
 *
 * @param {[string, string][]} options Values with their titles; a title may be left out.
 * @param {string} value The option that is selected; `rest` are attributes.
 */
export const Select = ({ options, value, onChoose, ...rest }) => html`
  <select ...${rest} onChange=${(event) => onChoose?.(event.target.value)}>
    ${options.map(([option, title = option]) => html`
      <option key=${option} value=${option} selected=${option === value}>${title}</option>`)}
  </select>`;

/** A selection that adds something each time. */
export const Adder = ({ label, title, options, onAdd }) => html`
  <select class="adder" aria-label=${label} value="" onChange=${({ target }) => {
    onAdd(target.value);
    target.value = "";
  }}>
    <option value="">${title} …</option>
    ${options.map(([option, text]) => html`<option key=${option} value=${option}>${text}</option>`)}
  </select>`;

export const Remove = ({ what, onRemove }) => html`<button type="button" class="quiet remove"
  aria-label=${`Remove ${what}`} onClick=${onRemove}>×</button>`;

/** A button that shows more of a list, if there is more. */
export const More = ({ shown, count, step, onMore }) => shown < count && html`
  <button type="button" onClick=${() => onMore(shown + step)}>
    Show ${Math.min(step, count - shown).toLocaleString("en")} more</button>`;

export const ConsumerLink = ({ uuid }) => html`
  <a class="mono" href=${consumerAddress(uuid)} title=${uuid}>${shortened(uuid)}</a>`;

const Legend = ({ kind, label, entries, hasSigns = false }) => html`
  <ul class=${`legend ${kind}`} aria-label=${label}>
    ${entries.map(([colour, name]) => html`
      <li key=${name}><span class=${`swatch ${colour}`}></span>${name}</li>`)}
    ${hasSigns && html`
      <li><span class="sign" aria-hidden="true"></span>a provider has a condition</li>`}
  </ul>`;

const BARS = [["used", "used"], ["held", "held"], ["free", "free"], ["reserved", "reserved"]];

export const BarLegend = ({ hasWanted = false }) => html`<${Legend} kind="bars"
  label="Colours of the bars"
  entries=${hasWanted ? BARS.toSpliced(2, 0, ["wanted", "this candidate"]) : BARS} />`;

/** @param {boolean} hasSigns Whether the map has signs of conditions. */
export const MapLegend = ({ entries = LOADS, hasSigns }) => html`<${Legend} kind="loads"
  label="Colours of the map" entries=${entries} hasSigns=${hasSigns} />`;
