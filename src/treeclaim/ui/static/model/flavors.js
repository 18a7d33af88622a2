// SPDX-License-Identifier: Apache-2.0
/** Flavors to questions, as the package's client does it (contract page 97, section 4). */

import { PARAMETERS } from "./parameters.js";
import { encoded } from "./query.js";

const SUFFIX = "((?:[1-9][0-9]*|_[a-zA-Z0-9_-]{1,63})?)";
const namesOf = (wanted) => Object.entries(PARAMETERS).filter(([, parameter]) => wanted(parameter)).map(([name]) => name);
const ITEMS = Object.values(PARAMETERS).map(({ flavorItems }) => flavorItems).filter(Boolean).join("|");
const KEY = new RegExp(`^(${ITEMS})${SUFFIX}:([A-Z0-9_]+)$`);
const LOOKS_LIKE_KEY = new RegExp(`^(${ITEMS})[^:]*:`);
const NAMES = namesOf(({ ofGroup, flavorItems }) => ofGroup && !flavorItems).join("|");
const GROUPED = new RegExp(`^(${NAMES})${SUFFIX}$`);
const LOOKS_GROUPED = new RegExp(`^(${NAMES})([0-9_].*)?$`);
const WHOLE = new Set(namesOf(({ ofGroup }) => !ofGroup));
const OWN = { vcpus: "VCPU", ram: "MEMORY_MB", disk: "DISK_GB" };

/** A flavor that cannot be read; the message names the key or the line. */
export class FlavorError extends Error {}

/**
 * Write the query of a flavor.
 *
 * @param {{vcpus: number, ram: number, disk: number, specs: Record<string, string>}} flavor
 */
export function queryOf(flavor) {
  const groups = new Map([["", { resources: new Map(), traits: [] }]]);
  const others = [];
  for (const [own, name] of Object.entries(OWN)) groups.get("").resources.set(name, flavor[own] || 0);
  for (const [key, value] of Object.entries(flavor.specs)) {
    if (WHOLE.has(key) || GROUPED.test(key)) others.push([key, value]);
    else if (LOOKS_LIKE_KEY.test(key)) readInto(groups, key, value);
    else if (LOOKS_GROUPED.test(key)) throw new FlavorError(`extra spec ${key}: the suffix is neither a number nor _NAME`);
  }
  const pairs = [];
  for (const [suffix, { resources, traits }] of groups) {
    const amounts = [...resources].filter(([, amount]) => amount).map(([name, amount]) => `${name}:${amount}`);
    if (amounts.length) pairs.push([`resources${suffix}`, amounts.join(",")]);
    if (traits.length) pairs.push([`required${suffix}`, traits.join(",")]);
  }
  return [...pairs, ...others].map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
}

function readInto(groups, key, value) {
  const match = KEY.exec(key);
  if (!match) throw new FlavorError(`extra spec ${key}: expected resources[N|_NAME]:CLASS or trait[N|_NAME]:TRAIT`);
  const [, kind, suffix, name] = match;
  if (!groups.has(suffix)) groups.set(suffix, { resources: new Map(), traits: [] });
  const group = groups.get(suffix);
  if (kind === "trait") {
    if (value !== "required" && value !== "forbidden") throw new FlavorError(`extra spec ${key}: ${value} is not required or forbidden`);
    group.traits.push(value === "required" ? name : `!${name}`);
    return;
  }
  if (!/^[0-9]+$/.test(value)) throw new FlavorError(`extra spec ${key}: ${value} is not an amount`);
  const isOwn = !suffix && Object.values(OWN).includes(name);
  if (!Number(value) && !isOwn) throw new FlavorError(`extra spec ${key}: an amount of 0 only removes VCPU, MEMORY_MB or DISK_GB`);
  group.resources.set(name, Number(value));
}

/**
 * Read flavors that somebody pasted: JSON of `openstack flavor list --long -f json` or
 * `flavor show`, or text, where `[NAME]` or `NAME:` begins a flavor, `KEY=VALUE` is one of `vcpus`,
 * `ram`, `disk` or an extra spec, and `NAME: resources=…` is a query.
 *
 * @returns {{name: string, query: string}[]}
 */
export function readFlavors(text) {
  const trimmed = text.trim();
  if (!trimmed) return [];
  const found = /^[[{]\s*["{\]}]/.test(trimmed) ? fromJson(trimmed) : fromText(trimmed);
  const seen = new Map();
  return found.map(({ name, ...flavor }) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    const query = flavor.query ?? queryOf(flavor);
    if (!query) throw new FlavorError(`${name}: asks for nothing`);
    return { name: times > 1 ? `${name} (${times})` : name, query };
  });
}

function fromJson(text) {
  let document;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new FlavorError(`this is not JSON: ${error.message}`);
  }
  return [document].flat().map((entry, index) => {
    const lower = Object.fromEntries(Object.entries(entry).map(([key, value]) => [key.toLowerCase(), value]));
    const specs = lower.properties ?? lower.extra_specs ?? {};
    return {
      name: String(lower.name ?? lower.id ?? `flavor ${index + 1}`),
      vcpus: Number(lower.vcpus) || 0, ram: Number(lower.ram) || 0, disk: Number(lower.disk) || 0,
      specs: typeof specs === "string" ? fromProperties(specs) : mapped(specs),
    };
  });
}

const mapped = (specs) => Object.fromEntries(Object.entries(specs).map(([key, value]) => [key, String(value)]));

const fromProperties = (text) =>
  Object.fromEntries([...text.matchAll(/([^\s=,']+)='([^']*)'/g)].map(([, key, value]) => [key, value]));

function fromText(text) {
  const flavors = [];
  const current = (name) => {
    flavors.push({ name, vcpus: 0, ram: 0, disk: 0, specs: Object.create(null) });
    return flavors.at(-1);
  };
  for (const [number, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim().replace(/^--property\s+/, "").replace(/^(['"])(.*)\1$/, "$2");
    if (!line || line.startsWith("#")) continue;
    const [, name, query] = /^([^=\s]+):\s+(\S+=\S*)$/.exec(line) ?? [];
    const [, heading, colon] = /^(?:\[(.+)\]|([^=\s]+):)$/.exec(line) ?? [];
    if (name) {
      current(name).query = query.replace(/^\?/, "");
    } else if (heading ?? colon) {
      current(heading ?? colon);
    } else {
      const at = line.indexOf("=");
      if (at < 1) throw new FlavorError(`line ${number + 1}: expected KEY=VALUE, NAME: or [NAME]`);
      const flavor = flavors.at(-1)?.query === undefined && flavors.length ? flavors.at(-1) : current("flavor");
      const [key, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      if (Object.hasOwn(OWN, key)) flavor[key] = Number(value) || 0;
      else flavor.specs[key] = value;
    }
  }
  return flavors;
}
