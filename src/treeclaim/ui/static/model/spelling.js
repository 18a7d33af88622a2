// SPDX-License-Identifier: Apache-2.0
/** What a misspelt word may have meant, as treeclaim/client/spelling.py finds it. */

const FAR = 3;
const LONGEST = 64;

/** Return the known word that a word misspells, undefined if there is none. */
export function nearest(word, known) {
  const near = [...known]
    .map((other) => ({ other, distance: distance(word.toLowerCase().slice(0, LONGEST), other.toLowerCase()) }))
    .filter((found) => found.distance <= Math.min(FAR - 1, Math.floor(found.other.length / 4)));
  return near.sort((first, second) => first.distance - second.distance)[0]?.other;
}

function distance(first, second) {
  if (Math.abs(first.length - second.length) >= FAR) return FAR;
  let above = Array.from({ length: second.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...first].entries()) {
    const line = [row + 1];
    for (const [column, other] of [...second].entries()) {
      line.push(Math.min(above[column] + (letter !== other), above[column + 1] + 1, line[column] + 1));
    }
    above = line;
  }
  return above.at(-1);
}
