// SPDX-License-Identifier: Apache-2.0
/**
 * What-if: what a question takes for granted, as rows of a form, as a part of the address, and as the
 * member `given` of a call (contract page 101, section 1).
 */

import * as endpoints from "../api/endpoints.js";
import { INCLUDE } from "./parts.js";
import { encoded, pairsOf } from "./query.js";

/** The kinds of rows: what they are called, what one enters, whether a number stands before that. */
export const KINDS = Object.freeze({
  release: { title: "release consumers", hint: "UUIDs" },
  without: { title: "without the host", hint: "name or UUID" },
  more: { title: "more hosts like", hint: "name or UUID", hasAmount: true },
  place: { title: "placed first, with the query", hint: "a query", hasAmount: true },
});

const PREFIX = "if_";
const IS_ROW = new RegExp(`^${PREFIX}(${Object.keys(KINDS).join("|")})=`);

const MOST_ENTRIES = 10_000;
const LONGEST_NAME = 200;
/* Bounds of one call: of new providers, and of the letters of a provider's name. */

const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** What is to be taken for granted cannot be; the message says why. */
export class AsIfError extends Error {}

export const newRow = (kind) => ({ kind, amount: KINDS[kind].hasAmount ? "4" : "", text: "" });

/**
 * Take the rows out of the query of an address.
 *
 * @param {string} text The query of the address.
 * @returns {{query: string, rows: {kind: string, amount: string, text: string}[]}} The rest as it was, and the rows.
 */
export function splitAsIf(text) {
  const parts = text.split("&").filter(Boolean);
  const rows = parts.filter((part) => IS_ROW.test(part)).map((part) => {
    const [[name, value]] = pairsOf(part);
    const kind = name.slice(PREFIX.length);
    if (!KINDS[kind].hasAmount) return { kind, amount: "", text: value };
    const [, amount, rest] = /^(\d*):(.*)$/s.exec(value) ?? [, "", value];
    return { kind, amount, text: rest };
  });
  return { query: parts.filter((part) => !IS_ROW.test(part)).join("&"), rows };
}

/** Write a query with rows behind it; those that are not filled in are left out. */
export function withAsIf(query, rows) {
  const written = filled(rows).map(({ kind, amount, text }) =>
    `${PREFIX}${kind}=${encoded(KINDS[kind].hasAmount ? `${amount}:${text}` : text)}`);
  return [query, ...written].filter(Boolean).join("&");
}

export const filled = (rows) => rows.filter(({ text }) => text.trim());

/** The words of a list that somebody typed. */
export const listed = (text) => text.split(/[\s,]+/).filter(Boolean);

/**
 * Make the member `given` of a call.
 *
 * @returns {Promise<{given: object, made: object[]}|null>} What is given, and the providers that it makes, as
 *   GET /treeclaim/providers lists them; null where nothing is.
 * @throws {AsIfError} Where there is no such host, or a number is none.
 */
export async function givenBy(api, rows, signal) {
  const all = filled(rows);
  if (!all.length) return null;
  const of = (wanted) => all.filter(({ kind }) => kind === wanted);
  const without = [];
  for (const { text } of of("without")) without.push((await hostNamed(api, text, signal)).uuid);
  const made = [];
  let number = 0;
  for (const { text, amount } of of("more")) {
    const { root_provider_uuid: root } = await hostNamed(api, text, signal);
    const tree = await endpoints.providersOfTrees(api, [root], INCLUDE, signal);
    const wanted = amountOf(amount);
    if (made.length + wanted * tree.length > MOST_ENTRIES) throw new AsIfError(`More than ${MOST_ENTRIES} new providers are too many.`);
    for (let copy = 0; copy < wanted; copy += 1) made.push(...copied(tree, root, number += 1));
  }
  const given = { release: of("release").flatMap(({ text }) => listed(text)), without, providers: made.map(asEntry) };
  const placed = of("place").map(({ text, amount }) => ({ query: text.trim(), amount: amountOf(amount) }));
  return { given: { ...given, place: { requests: placed } }, made };
}

function amountOf(text) {
  if (!/^0*[1-9]\d{0,5}$/.test(text)) throw new AsIfError(`'${text}' is not a number from 1 to 999999.`);
  return Number(text);
}

/** The provider that somebody means by its name or uuid. */
export async function hostNamed(api, text, signal) {
  const wanted = text.trim();
  const [found] = UUID.test(wanted) ? await endpoints.providersByUuid(api, [wanted], signal)
    : await endpoints.providersNamed(api, wanted, signal);
  if (!found) throw new AsIfError(`There is no host '${wanted}'.`);
  return found;
}

/** A tree once more: the same but for uuids, names and who is in it. */
function copied(tree, root, number) {
  const { name: rootName } = tree.find(({ uuid }) => uuid === root);
  const again = (uuid) => uuid && otherUuid(uuid, number);
  return tree.map(({ uuid, name, parent_provider_uuid: parent, root_provider_uuid: top, usages, generation, ...parts }, index) => {
    const short = name.startsWith(rootName) ? `${rootName}+${number}${name.slice(rootName.length)}` : `${name}+${number}`;
    const inventories = parts.inventories && Object.fromEntries(Object.entries(parts.inventories)
      .map(([resourceClass, inventory]) => [resourceClass, consumingAgain(inventory, again)]));
    return {
      ...parts, inventories, uuid: again(uuid), parent_provider_uuid: again(parent), root_provider_uuid: again(top), usages: {},
      name: short.length > LONGEST_NAME ? `${rootName.slice(0, LONGEST_NAME - 20)}+${number}.${index}` : short,
    };
  });
}

/** An inventory of a copy consumes of the copy, not of what was copied. */
const consumingAgain = (inventory, again) => (inventory.consumes
  ? { ...inventory, consumes: inventory.consumes.map((entry) => ({ ...entry, provider: again(entry.provider) })) } : inventory);

/** A uuid for a copy: the same each time, so that an address has the same answer. */
function otherUuid(uuid, number) {
  const other = BigInt(`0x${uuid.replaceAll("-", "")}`) ^ BigInt.asUintN(128, BigInt(number) * 0x9e3779b97f4a7c15f39cc0605cedc835n);
  return other.toString(16).padStart(32, "0").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const asEntry = ({ root_provider_uuid: root, usages, ...entry }) => entry;
