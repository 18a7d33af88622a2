// SPDX-License-Identifier: Apache-2.0
/** Flavors in a pasted text; the server turns them into queries (contract page 97, section 4.1). */

/** A text that cannot be read; the message names the flavor or the line. */
export class FlavorError extends Error {}

const SIZES = new Set(["vcpus", "ram", "disk", "ephemeral", "os-flv-ext-data:ephemeral", "swap"]);
const SPECS = new Set(["extra_specs", "properties"]);
const isMapping = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Read flavors: JSON of `openstack flavor list --long -f json` or `flavor show`, or text, where
 * `[NAME]` or `NAME:` begins a flavor, `KEY=VALUE` is one of `vcpus`, `ram`, `disk`, `ephemeral`,
 * `swap` or an extra spec, and `NAME: resources=…` is a query.
 *
 * @returns {{name: string, query?: string, flavor?: object}[]} Each with its query, or its document.
 */
export function readFlavors(text) {
  const trimmed = text.trim();
  if (!trimmed) return [];
  const entries = /^[[{]\s*["{\]}]/.test(trimmed) ? fromJson(trimmed) : fromText(trimmed);
  const counts = new Map();
  return entries.map(({ name, ...entry }) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return { name: counts.get(name) > 1 ? `${name} (${counts.get(name)})` : name, ...entry };
  });
}

/**
 * Return flavors with their queries.
 *
 * @param {{name: string, query?: string, flavor?: object}[]} flavors As `readFlavors` returns them.
 * @param {(documents: object[]) => Promise<object[]>} translate Calls the server.
 * @returns {Promise<{name: string, query: string}[]>}
 */
export async function withQueries(flavors, translate) {
  const documents = flavors.filter(({ flavor }) => flavor).map(({ name, flavor }) => ({ ...flavor, name }));
  const answers = new Map((documents.length ? await translate(documents) : []).map((answer) => [answer.name, answer]));
  return flavors.map(({ name, query }) => {
    const answer = answers.get(name) ?? { query };
    if (answer.error) throw new FlavorError(`${name}: ${answer.error}`);
    if (!answer.query.includes("resources")) throw new FlavorError(`${name}: asks for nothing`);
    return { name, query: answer.query };
  });
}

function fromJson(text) {
  let document;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new FlavorError(`this is not JSON: ${error.message}`);
  }
  const isOne = !isMapping(document) || !Object.values(document).every(isMapping)
    || Object.keys(document).some((name) => SPECS.has(name.toLowerCase()));
  const entries = isOne
    ? [document].flat().map((flavor, index) => ({ name: nameOf(flavor) || `flavor ${index + 1}`, flavor }))
    : Object.entries(document).map(([name, flavor]) => ({ name, flavor }));
  for (const { name, flavor } of entries) {
    if (!isMapping(flavor)) throw new FlavorError(`${name}: a flavor is a mapping of vcpus, ram, disk and extra_specs`);
  }
  return entries;
}

function nameOf(flavor) {
  if (!isMapping(flavor)) return "";
  const lower = new Map(Object.entries(flavor).map(([name, value]) => [name.toLowerCase(), value]));
  return String(lower.get("name") || lower.get("id") || "");
}

function fromText(text) {
  const entries = [];
  const begin = (name) => {
    entries.push({ name, flavor: { extra_specs: Object.create(null) } });
    return entries.at(-1);
  };
  for (const [number, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim().replace(/^--property\s+/, "").replace(/^(['"])(.*)\1$/, "$2");
    if (!line || line.startsWith("#")) continue;
    const [, name, query] = /^([^=\s]+):\s+(\S+=\S*)$/.exec(line) ?? [];
    const [, heading, colon] = /^(?:\[(.+)\]|([^=\s]+):)$/.exec(line) ?? [];
    if (name) {
      entries.push({ name, query: query.replace(/^\?/, "") });
    } else if (heading ?? colon) {
      begin(heading ?? colon);
    } else {
      const at = line.indexOf("=");
      if (at < 1) throw new FlavorError(`line ${number + 1}: expected KEY=VALUE, NAME: or [NAME]`);
      const { flavor } = entries.at(-1)?.flavor ? entries.at(-1) : begin("flavor");
      const [key, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      (SIZES.has(key.toLowerCase()) ? flavor : flavor.extra_specs)[key] = value;
    }
  }
  return entries;
}
