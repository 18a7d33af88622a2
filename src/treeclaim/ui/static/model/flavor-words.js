// SPDX-License-Identifier: Apache-2.0
/** Extra specs in Nova's words, and misspelt ones, as client/requests/server_flavors.py reads them. */

import { FlavorError } from "./flavor-error.js";
import { TRANSLATED } from "./flavor-members.js";
import { PARAMETERS } from "./parameters.js";
import { nearest } from "./spelling.js";

const KINDS = new Map(Object.entries(PARAMETERS).filter(([, { flavorItems }]) => flavorItems).map(([name, { flavorItems }]) => [name, flavorItems]));
const WORDS = [...KINDS.values(), ...Object.keys(PARAMETERS)];
const FORM = { resources: "CLASS=AMOUNT", trait: "TRAIT=required or forbidden" };
const GROUPED = new RegExp(`^(${Object.entries(PARAMETERS).filter(([, { ofGroup }]) => ofGroup).map(([name]) => name).join("|")})((?:[0-9_].*)?)$`, "s");
const NUMBERED = Object.keys(PARAMETERS).filter((name) => PARAMETERS[name].flavorNumbers).sort();
const THREADS = { isolate: "forbidden", prefer: undefined, require: "required" };
const MASK = "hw:cpu_dedicated_mask";

/** Return the name of the parameter that a key may stand for: without its number, if it has one. */
export function named(key) {
  const name = key.replace(/:[0-9]+$/, "");
  const word = GROUPED.exec(name)?.[1] ?? name;
  return NUMBERED.includes(word) ? name : key;
}

/** Refuse an extra spec that is a misspelt one of ours; those of others are left alone. */
export function refuseMisspelt(name) {
  const [begin] = name.split(":", 1);
  const hasColon = name.includes(":");
  const [, word, suffix] = GROUPED.exec(named(name)) ?? [, named(name)];
  if (!hasColon && KINDS.has(word)) {
    const kind = KINDS.get(word);
    throw new FlavorError(`extra spec ${name}: a flavor has ${kind}${suffix}:${FORM[kind]}`);
  }
  if (TRANSLATED.includes(name) || Object.hasOwn(PARAMETERS, word)) return;
  const parts = [begin, ...[...begin.matchAll(/[0-9_]/g)].map(({ index }) => begin.slice(0, index)).reverse()];
  const known = hasColon ? [...Object.keys(FORM), ...NUMBERED] : WORDS;
  const near = parts.reduce((found, part) => found ?? nearest(part, known), nearest(name, TRANSLATED));
  if (near && !parts.includes(near)) throw new FlavorError(`unknown extra spec '${name}'; did you mean '${near}'?`);
}

/** Return the extra specs that say in Placement's words what some of Nova's say. */
export function translated(vcpus, specs) {
  const found = new Map();
  const emulator = choice(specs, "hw:emulator_threads_policy", ["isolate", "share"]);
  const dedicated = dedicatedOf(vcpus, specs);
  if (dedicated) {
    found.set("resources:VCPU", String(vcpus - dedicated));
    found.set("resources:PCPU", String(dedicated + (emulator === "isolate" ? 1 : 0)));
  }
  const threads = THREADS[choice(specs, "hw:cpu_thread_policy", Object.keys(THREADS))];
  if (threads) found.set("trait:HW_CPU_HYPERTHREADING", threads);
  if (/^(1|true|yes|on)$/i.test(specs.get("hw:mem_encryption") ?? "")) found.set("resources:MEM_ENCRYPTION_CONTEXT", "1");
  const version = specs.get("hw:tpm_version");
  if (version) found.set(`trait:COMPUTE_SECURITY_TPM_${version.replaceAll(".", "_")}`, "required");
  return found;
}

function choice(specs, name, choices) {
  const word = specs.get(name) ?? "";
  if (word && !choices.includes(word)) throw new FlavorError(`extra spec ${name}: '${word}' is none of ${choices.join(", ")}`);
  return word;
}

function dedicatedOf(vcpus, specs) {
  const policy = choice(specs, "hw:cpu_policy", ["dedicated", "mixed", "shared"]);
  if (policy === "dedicated") return vcpus;
  return policy === "mixed" ? membersOf(specs.get(MASK) ?? "", vcpus).length : 0;
}

/** Return the processors of a mask such as `0-3,^2`; only exclusions mean all the others. */
function membersOf(mask, vcpus) {
  const parts = mask.split(",").map((part) => part.trim()).filter(Boolean);
  const excluded = new Set(parts.filter((part) => part.startsWith("^")).flatMap((part) => rangeOf(part.slice(1), vcpus)));
  const named = parts.filter((part) => !part.startsWith("^"));
  const found = named.length ? named.flatMap((part) => rangeOf(part, vcpus)) : rangeOf(`0-${vcpus - 1}`, vcpus);
  return [...new Set(found)].filter((cpu) => !excluded.has(cpu));
}

function rangeOf(text, vcpus) {
  const [, first, last] = /^([0-9]{1,6})(?:-([0-9]{1,6}))?$/.exec(text) ?? [];
  if (first === undefined) throw new FlavorError(`${MASK}: '${text}' is no processor`);
  const end = Number(last ?? first);
  if (end >= vcpus) throw new FlavorError(`${MASK}: there is no processor ${end}`);
  return Array.from({ length: Math.max(0, end - Number(first) + 1) }, (_, index) => Number(first) + index);
}
