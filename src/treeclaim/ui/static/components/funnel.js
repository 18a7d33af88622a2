// SPDX-License-Identifier: Apache-2.0
/** Why there are no (or no more) candidates: what rules trees out, the nearest trees, advice. */

import { aggregateName, count, counted } from "../model/numbers.js";
import { own } from "../model/texts.js";
import { treeAddress } from "../routes.js";
import { html } from "./html.js";

/**
 * @param {object} document Of contract page 97, section 3.
 * @param {Map<string, string>} names Of aggregates.
 */
export function Explanation({ document, names }) {
  const { trees, funnel, nearest, advice, feasible } = document;
  const of = trees.considered;
  return html`<div class="explanation">
    <p class=${`verdict ${feasible ? "good" : "bad"}`} role="status">
      ${verdict(document)}</p>
    <${Section} name="funnel" title="Constraints that rule trees out"><ol class="funnel">
      <li><span class="step">all trees</span>
        <${FunnelBar} before=${of} after=${of} of=${of} />
        <span class="number">${count(of)}</span></li>
      ${funnel.map((step, index) => html`
        <${Step} key=${index} step=${step} of=${of} names=${names} />`)}
    </ol><//>
    ${advice.length > 0 && html`<${Section} name="advice" title="Changes that would help">
      <ul class="advice">${advice.map((line) => html`<li key=${line}>${line}</li>`)}</ul><//>`}
    ${nearest.length > 0 && !feasible && html`<${Section} name="nearest" title="Nearest trees">
      <ul class="nearest">${nearest.map((tree) => html`
        <${Nearest} key=${tree.root_provider.uuid} tree=${tree} names=${names} />`)}</ul><//>`}
  </div>`;
}

const Section = ({ name, title, children }) => html`<section aria-labelledby=${`${name}-title`}>
  <h3 id=${`${name}-title`}>${title}</h3>${children}</section>`;

function Step({ step, of, names }) {
  const { group, reason, detail, trees_before: before, trees_after: after } = step;
  return html`<li><span class="step">
      ${group !== null && html`<code>${group || "unsuffixed"}</code> `}
      ${sentence(reason, detail, names)}</span>
    <${FunnelBar} before=${before} after=${after} of=${of} />
    <span class="number">
      ${count(after)} <span class="bad">−${count(before - after)}</span></span></li>`;
}

function verdict({ feasible, trees, fits_when_empty: fits }) {
  const all = counted(trees.considered, "tree");
  if (feasible) return `${count(trees.matching)} of ${all} match.`;
  const would = fits ? "It would fit" : "It would not fit even";
  return `None of ${all} matches. ${would} if nothing were allocated.`;
}

function FunnelBar({ before, after, of }) {
  const width = (trees) => ({ width: `${of ? (100 * trees) / of : 0}%` });
  return html`<span class="funnel-bar" aria-hidden="true">
    <span class="lost" style=${width(before)}></span>
    <span class="left" style=${width(after)}></span></span>`;
}

function Nearest({ tree: { root_provider: root, blocked_by: blocks }, names }) {
  return html`<li><a href=${treeAddress(root.uuid)}>${root.name}</a>
    <ul>${blocks.map(({ group, reason, detail, providers = [] }, index) => html`<li key=${index}>
      ${group !== null && html`<span class="quieter">
        ${group ? `group ${group}` : "unsuffixed group"}: </span>`}
      ${sentence(reason, detail, names)}
      ${providers.length > 0 && html`
        <span class="fine"> — ${providers.map(freeOf).join("; ")}</span>`}
    </li>`)}</ul></li>`;
}

function freeOf({ name, resource_class: wanted, requested, free, attributes }) {
  const amounts = wanted ? `: ${count(free)} ${wanted} free, ${count(requested)} requested` : "";
  const values = Object.entries(attributes ?? {})
    .map(([attribute, value]) => `${attribute}: ${JSON.stringify(value)}`).join(", ");
  return `${name}${amounts}${attributes ? ` (${values || "none of these attributes"})` : ""}`;
}

const list = (value = "what is asked for") => [value].flat().join(", ");

const traitsOf = ({ trait, traits }) => list(trait ?? traits);

/** Aggregates by their names, and in full by uuid without a name. */
const aggregatesOf = ({ aggregates, aggregate }, names) =>
  list([aggregates ?? aggregate ?? []].flat()
    .map((uuid) => (names.has(uuid.toLowerCase()) ? aggregateName(names, uuid) : uuid)));

const WORDS = {
  no_inventory: ({ resource_class: name = "the class" }) => `has no inventory of ${name}`,
  amount_unit: ({ resource_class: name = "", requested = "" }) =>
    `${requested} ${name} is against min_unit, max_unit or step_size`,
  capacity: ({ resource_class: name = "", requested = "" }) =>
    `has no room for ${requested} ${name}`,
  condition: ({ key = "a condition", reason }) =>
    `gives nothing new, because of ${key}${reason ? `: ${reason}` : ""}`,
  trait_missing: (detail) => `lacks ${traitsOf(detail)}`,
  trait_forbidden: (detail) => `has ${traitsOf(detail)}, which is forbidden`,
  not_member_of: (detail, names) => `is not in ${aggregatesOf(detail, names)}`,
  forbidden_member_of: (detail, names) =>
    `is in ${aggregatesOf(detail, names)}, which is forbidden`,
  not_in_tree: () => "is not in the tree that is asked for",
  not_in_subtree: () => "is not in the subtree that is asked for",
  root_trait: (detail) => `the root has not the traits that are asked for${
    detail.trait || detail.traits ? `: ${traitsOf(detail)}` : ""}`,
  root_member_of: () => "the root is not in the aggregates that are asked for",
  where: ({ expression = "what is asked of its attributes" }) => `does not satisfy ${expression}`,
  root_where: ({ expression = "what is asked of its attributes" }) =>
    `the root does not satisfy ${expression}`,
  same_subtree: ({ groups }) => `${list(groups)} have no subtree in common`,
  isolate: ({ groups }) => `${list(groups)} would share a provider`,
  match: ({ attribute = "the attribute", groups }) =>
    `${list(groups)} have no value of ${attribute} in common`,
  distinct: ({ attribute = "the attribute", groups }) =>
    `${list(groups)} have no different values of ${attribute}`,
  combined_capacity: () => "each group fits alone, together they do not",
  no_common_tree: () => "every group has providers, but no tree serves them all",
  rule: ({ rule }) => `rule ${rule} is broken`,
};

/**
 * Return a reason in words; an unknown reason is shown as it came.
 *
 * @param {Map<string, string>} names Of aggregates.
 */
function sentence(reason, detail, names) {
  const words = own(WORDS, reason);
  if (!words) return `${reason} ${JSON.stringify(detail)}`;
  const members = Object.entries(detail ?? {}).filter(([, value]) => value !== null);
  return words(Object.fromEntries(members), names).replaceAll(/\s+/g, " ");
}
