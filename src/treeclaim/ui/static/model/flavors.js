// SPDX-License-Identifier: Apache-2.0
/**
 * Flavors to questions, as the package's client does it (contract page 97, section 4): in
 * client/requests/server_flavors.py and flavors.py. tests/client/flavors.json holds both.
 */

import { flavorOf, flavorsOf } from "./flavor-documents.js";
import { FlavorError } from "./flavor-error.js";
import { named, refuseMisspelt, translated } from "./flavor-words.js";
import { PARAMETERS } from "./parameters.js";
import { SIZES } from "./flavor-members.js";
import { encoded } from "./query.js";
import { nearest } from "./spelling.js";

export { FlavorError };

const SUFFIX = "((?:[1-9][0-9]*|_[a-zA-Z0-9_-]{1,63})?)";
const namesOf = (wanted) => Object.entries(PARAMETERS).filter(([, parameter]) => wanted(parameter)).map(([name]) => name);
const ITEMS = Object.values(PARAMETERS).map(({ flavorItems }) => flavorItems).filter(Boolean).join("|");
const KEY = new RegExp(`^(${ITEMS})${SUFFIX}:([A-Z0-9_]+)$`);
const LOOKS_LIKE_KEY = new RegExp(`^(${ITEMS})[^:]*:`);
const NAMES = namesOf(({ ofGroup, flavorItems }) => ofGroup && !flavorItems).join("|");
const GROUPED = new RegExp(`^(${NAMES})${SUFFIX}$`);
const LOOKS_GROUPED = new RegExp(`^(${NAMES})([0-9_].*)?$`);
const WHOLE = new Set(namesOf(({ ofGroup }) => !ofGroup));
const OWN = ["VCPU", "MEMORY_MB", "DISK_GB"];
const MIB_IN_GIB = 1024;
const ENABLED = "!COMPUTE_STATUS_DISABLED";

/**
 * Write the query of a flavor, as Nova would ask for a server of it.
 *
 * @param {{vcpus: number, ram: number, disk: number, ephemeral: number, swap: number,
 *   specs: Record<string, string>}} flavor
 */
export function queryOf(flavor) {
  const specs = new Map(Object.entries(flavor.specs));
  for (const key of specs.keys()) refuseMisspelt(key);
  const groups = new Map([["", { resources: new Map(), traits: [] }]]);
  const others = [];
  const disk = (flavor.disk || 0) + (flavor.ephemeral || 0) + Math.ceil((flavor.swap || 0) / MIB_IN_GIB);
  for (const [name, amount] of [["VCPU", flavor.vcpus || 0], ["MEMORY_MB", flavor.ram || 0], ["DISK_GB", disk]]) {
    groups.get("").resources.set(name, amount);
  }
  for (const [key, value] of new Map([...translated(flavor.vcpus || 0, specs), ...specs])) {
    const name = named(key);
    if (WHOLE.has(name) || GROUPED.test(name)) others.push([name, value]);
    else if (LOOKS_LIKE_KEY.test(key)) readInto(groups, key, value);
    else if (LOOKS_GROUPED.test(key)) throw new FlavorError(`extra spec ${key}: the suffix is neither a number nor _NAME`);
  }
  const pairs = [];
  for (const [suffix, { resources, traits }] of groups) {
    const amounts = [...resources].filter(([, amount]) => amount).map(([name, amount]) => `${name}:${amount}`);
    if (amounts.length) pairs.push([`resources${suffix}`, amounts.join(",")]);
    if (traits.length) pairs.push([`required${suffix}`, traits.join(",")]);
  }
  if (!specs.has("root_required")) others.push(["root_required", ENABLED]);
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
  const isOwn = !suffix && OWN.includes(name);
  if (!Number(value) && !isOwn) throw new FlavorError(`extra spec ${key}: an amount of 0 only removes VCPU, MEMORY_MB or DISK_GB`);
  group.resources.set(name, Number(value));
}

/**
 * Read flavors that somebody pasted: JSON of `openstack flavor list --long -f json` or
 * `flavor show`, or text, where `[NAME]` or `NAME:` begins a flavor, `KEY=VALUE` is one of `vcpus`,
 * `ram`, `disk`, `ephemeral`, `swap` or an extra spec, and `NAME: resources=…` is a query.
 *
 * @returns {{name: string, query: string}[]}
 */
export function readFlavors(text) {
  const trimmed = text.trim();
  if (!trimmed) return [];
  const found = /^[[{]\s*["{\]}]/.test(trimmed) ? fromJson(trimmed) : fromText(trimmed);
  const seen = new Map();
  return found.map(({ name, flavor, query: given }) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    const query = given ?? about(name, () => queryOf(flavor));
    if (!query.includes("resources")) throw new FlavorError(`${name}: asks for nothing`);
    return { name: times > 1 ? `${name} (${times})` : name, query };
  });
}

/** Do something with a flavor; what is wrong with it is told with its name. */
function about(name, done) {
  try {
    return done();
  } catch (error) {
    throw error instanceof FlavorError ? new FlavorError(`${name}: ${error.message}`) : error;
  }
}

function fromJson(text) {
  let document;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new FlavorError(`this is not JSON: ${error.message}`);
  }
  return flavorsOf(document).map(({ name, entry }) => ({ name, flavor: about(name, () => flavorOf(entry)) }));
}

function fromText(text) {
  const found = [];
  const begin = (name) => {
    found.push({ name, entry: Object.create(null), specs: Object.create(null) });
    return found.at(-1);
  };
  for (const [number, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim().replace(/^--property\s+/, "").replace(/^(['"])(.*)\1$/, "$2");
    if (!line || line.startsWith("#")) continue;
    const [, name, query] = /^([^=\s]+):\s+(\S+=\S*)$/.exec(line) ?? [];
    const [, heading, colon] = /^(?:\[(.+)\]|([^=\s]+):)$/.exec(line) ?? [];
    if (name) {
      begin(name).query = query.replace(/^\?/, "");
    } else if (heading ?? colon) {
      begin(heading ?? colon);
    } else {
      const at = line.indexOf("=");
      if (at < 1) throw new FlavorError(`line ${number + 1}: expected KEY=VALUE, NAME: or [NAME]`);
      const flavor = found.at(-1)?.query === undefined && found.length ? found.at(-1) : begin("flavor");
      const [key, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      if (Object.hasOwn(SIZES, key.toLowerCase())) flavor.entry[key] = value;
      else flavor.specs[key] = value;
    }
  }
  return found.map(({ name, query, entry, specs }) => query === undefined
    ? { name, flavor: about(name, () => flavorOf({ ...entry, extra_specs: refused(specs) })) }
    : { name, query });
}

/** Extra specs of a text, where a misspelt size looks like one. */
function refused(specs) {
  for (const key of Object.keys(specs)) {
    const near = key.includes(":") ? undefined : nearest(key, Object.keys(SIZES));
    if (near) throw new FlavorError(`unknown '${key}'; did you mean '${near}'?`);
  }
  return specs;
}
