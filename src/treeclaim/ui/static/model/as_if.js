// SPDX-License-Identifier: Apache-2.0
/**
 * Assumptions (what-if): as rows of a form, as a part of the address, and as the member `given` of
 * a call (contract page 101, section 1).
 */

import * as endpoints from "../api/endpoints.js";
import { INCLUDE } from "./parts.js";
import { encoded, pairsOf } from "./query.js";

/** The kinds of rows: their titles, what one enters, whether a number stands before that. */
export const KINDS = Object.freeze({
  release: { title: "release consumers", hint: "UUIDs" },
  without: { title: "without the host", hint: "name or UUID" },
  more: { title: "more hosts like", hint: "name or UUID", hasAmount: true },
  place: { title: "placed first, with the query", hint: "a query", hasAmount: true },
});

const IS_ROW = new RegExp(`^if_(${Object.keys(KINDS).join("|")})=`);

const MOST_ENTRIES = 10_000;
const LONGEST_NAME = 200;
/* Bounds of one call: of new providers, and of the characters of a provider's name. */

const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** An assumption, or another parameter of a plan, is impossible; the message says why. */
export class AsIfError extends Error {}

export const newRow = (kind) => ({ kind, amount: KINDS[kind].hasAmount ? "4" : "", text: "" });

/**
 * Take the rows out of the query of an address.
 *
 * @param {string} address The query.
 * @returns {{query: string, rows: {kind: string, amount: string, text: string}[]}} The rest of the
 *   query as it was, and the rows.
 */
export function splitAsIf(address) {
  const parts = address.split("&").filter(Boolean);
  const rows = parts.filter((part) => IS_ROW.test(part)).map((part) => {
    const [[name, value]] = pairsOf(part);
    const kind = name.slice("if_".length);
    if (!KINDS[kind].hasAmount) return { kind, amount: "", text: value };
    const [, amount = "", text = value] = /^(\d*):(.*)$/s.exec(value) ?? [];
    return { kind, amount, text };
  });
  return { query: parts.filter((part) => !IS_ROW.test(part)).join("&"), rows };
}

/** Write a query, and rows behind it; rows that are not filled in are left out. */
export function withAsIf(query, rows) {
  const text = typeof query === "string" ? query : `${new URLSearchParams(query)}`;
  return [text, ...filled(rows).map(({ kind, amount, text: value }) =>
    `if_${kind}=${encoded(KINDS[kind].hasAmount ? `${amount}:${value}` : value)}`)]
    .filter(Boolean).join("&");
}

export const filled = (rows) => rows.filter(({ text }) => text.trim());

/** Split a typed list into words. */
export const listed = (text) => text.split(/[\s,]+/).filter(Boolean);

/**
 * Make the member `given` of a call.
 *
 * @returns {Promise<{given: object, made: object[]}|null>} The assumptions, and the providers that
 *   they create, as GET /treeclaim/providers lists them; null without assumptions.
 * @throws {AsIfError} If a host does not exist, or a number is invalid.
 */
export async function givenBy(api, rows, signal) {
  if (!filled(rows).length) return null;
  const { release = [], without = [], more = [], place = [] } =
    Object.groupBy(filled(rows), ({ kind }) => kind);
  const made = [];
  let number = 0;
  for (const { text, amount } of more) {
    const { root_provider_uuid: root } = await hostNamed(api, text, signal);
    const tree = await endpoints.providersOfTrees(api, [root], INCLUDE, signal);
    const copies = amountOf(amount);
    if (made.length + copies * tree.length > MOST_ENTRIES) {
      throw new AsIfError(`More than ${MOST_ENTRIES} new providers are too many.`);
    }
    for (let copy = 0; copy < copies; copy += 1) made.push(...copyOf(tree, root, number += 1));
  }
  const removed = await Promise.all(without.map(({ text }) => hostNamed(api, text, signal)));
  const given = {
    release: release.flatMap(({ text }) => listed(text)),
    without: removed.map(({ uuid }) => uuid),
    providers: made.map(({ root_provider_uuid: root, usages, ...entry }) => entry),
    place: { requests: place.map(({ text, amount }) =>
      ({ query: text.trim(), amount: amountOf(amount) })) },
  };
  return { given, made };
}

function amountOf(text) {
  if (/^0*[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new AsIfError(`'${text}' is not a number from 1 to 999999.`);
}

/**
 * Find the provider by a typed name or uuid.
 *
 * @throws {AsIfError} If there is no such provider.
 */
export async function hostNamed(api, text, signal) {
  const name = text.trim();
  const [host] = UUID.test(name) ? await endpoints.providersByUuid(api, [name], signal)
    : await endpoints.providers(api, { name }, signal);
  if (!host) throw new AsIfError(`There is no host '${name}'.`);
  return host;
}

/** Copy a tree: all is equal but uuids, names and usages. */
function copyOf(tree, root, number) {
  const { name: rootName } = tree.find(({ uuid }) => uuid === root);
  const copied = (uuid) => uuid && otherUuid(uuid, number);
  return tree.map(({ generation, ...row }, index) => {
    const name = row.name.startsWith(rootName)
      ? `${rootName}+${number}${row.name.slice(rootName.length)}` : `${row.name}+${number}`;
    const inventories = row.inventories && Object.fromEntries(Object.entries(row.inventories)
      .map(([resourceClass, inventory]) => [resourceClass, inventoryOf(inventory, copied)]));
    return {
      ...row, inventories, usages: {}, uuid: copied(row.uuid),
      parent_provider_uuid: copied(row.parent_provider_uuid),
      root_provider_uuid: copied(row.root_provider_uuid),
      name: name.length <= LONGEST_NAME ? name
        : `${rootName.slice(0, LONGEST_NAME - 20)}+${number}.${index}`,
    };
  });
}

/** An inventory of a copy consumes of the copy instead of the original. */
const inventoryOf = ({ consumes, ...inventory }, copied) => (consumes
  ? { ...inventory, consumes: consumes.map((entry) =>
    ({ ...entry, provider: copied(entry.provider) })) }
  : inventory);

/** A uuid for a copy: the same each time, so that an address has the same answer. */
function otherUuid(uuid, number) {
  const mask = BigInt.asUintN(128, BigInt(number) * 0x9e3779b97f4a7c15f39cc0605cedc835n);
  return (BigInt(`0x${uuid.replaceAll("-", "")}`) ^ mask).toString(16).padStart(32, "0")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
