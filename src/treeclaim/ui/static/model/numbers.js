// SPDX-License-Identifier: Apache-2.0
/** Numbers as people read them. */

const WHOLE = new Intl.NumberFormat("en");

export const count = (number) => WHOLE.format(number);

export const counted = (number, noun, plural = `${noun}s`) =>
  `${count(number)} ${number === 1 ? noun : plural}`;

/** Write a share as a percentage; what is not nothing is never shown as 0 %. */
export function percent(share) {
  if (!Number.isFinite(share)) return "more than there is";
  const rounded = Math.round(100 * share);
  if (share > 0 && rounded === 0) return "< 1 %";
  if (share < 1 && rounded === 100) return "> 99 %";
  return `${rounded} %`;
}

export const milliseconds = (number) => (number < 10 ? `${number.toFixed(1)} ms`
  : number < 10_000 ? `${count(Math.round(number))} ms` : `${(number / 1000).toFixed(1)} s`);

/** Call an aggregate by its name, or else by the beginning of its uuid. */
export const aggregateName = (names, uuid) => names.get(uuid.toLowerCase()) ?? shortened(uuid);

export const shortened = (uuid) => (uuid.length === 36 ? `${uuid.slice(0, 8)}…` : uuid);
