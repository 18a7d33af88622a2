// SPDX-License-Identifier: Apache-2.0
/** Flavors in documents, as client/requests/flavors.py reads them. */

import { FlavorError } from "./flavor-error.js";
import { OTHERS, SIZES, SPECS } from "./flavor-members.js";
import { nearest } from "./spelling.js";

const PROPERTY = /([^\s=,']+)='([^']*)'/g;
const isMapping = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Return the flavors of a document: one flavor, a list of them, or each by its name. */
export function flavorsOf(document) {
  if (isMapping(document) && !isFlavor(document)) return Object.entries(document).map(([name, entry]) => ({ name, entry }));
  return [document].flat().map((entry, index) => ({ name: nameOf(entry) || `flavor ${index + 1}`, entry }));
}

/** Return the flavor that a mapping describes. */
export function flavorOf(document) {
  if (!isMapping(document)) throw new FlavorError("a flavor is a mapping of vcpus, ram, disk and extra_specs");
  const flavor = { vcpus: 0, ram: 0, disk: 0, ephemeral: 0, swap: 0, specs: Object.create(null) };
  const given = new Map();
  for (const [name, value] of Object.entries(document)) {
    const member = name.toLowerCase();
    if (Object.hasOwn(SIZES, member)) {
      const amount = amountOf(name, value);
      if ((given.get(SIZES[member]) ?? amount) !== amount) throw new FlavorError(`${name}: it is given twice`);
      given.set(SIZES[member], amount);
      flavor[SIZES[member]] = amount;
    } else if (SPECS.includes(member)) Object.assign(flavor.specs, specsOf(name, value));
    else if (!OTHERS.includes(member)) throw new FlavorError(unknownWord(name, [...Object.keys(SIZES), ...SPECS]));
  }
  return flavor;
}

function unknownWord(name, known) {
  const near = nearest(name, known);
  return `unknown '${name}'${near ? `; did you mean '${near}'? Known` : "; known"} are ${known.join(", ")}`;
}

function amountOf(name, value) {
  const text = value === null || value === "" ? "0" : textOf(name, value);
  if (!/^[0-9]{1,10}$/.test(text)) throw new FlavorError(`${name}: '${text.slice(0, 40)}' is not an amount`);
  return Number(text);
}

const isFlavor = (document) =>
  !Object.values(document).every(isMapping) || Object.keys(document).some((name) => SPECS.includes(name.toLowerCase()));

function nameOf(entry) {
  if (!isMapping(entry)) return "";
  const lower = new Map(Object.entries(entry).map(([name, value]) => [name.toLowerCase(), value]));
  return String(lower.get("name") || lower.get("id") || "");
}

function specsOf(name, value) {
  if (typeof value === "string") {
    if (value.replace(PROPERTY, "").replace(/[ ,\n]/g, "")) throw new FlavorError(`${name}: it is not of the form KEY='VALUE', …`);
    return Object.fromEntries([...value.matchAll(PROPERTY)].map(([, key, spec]) => [key, spec]));
  }
  if (value !== null && !isMapping(value)) throw new FlavorError(`${name}: it is no mapping of extra specs`);
  return Object.fromEntries(Object.entries(value ?? {}).map(([key, spec]) => [key, textOf(`extra spec ${key}`, spec)]));
}

function textOf(name, value) {
  if (!["string", "number", "boolean"].includes(typeof value)) throw new FlavorError(`${name}: it is no text`);
  return String(value);
}
