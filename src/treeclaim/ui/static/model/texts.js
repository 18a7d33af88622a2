// SPDX-License-Identifier: Apache-2.0
/**
 * Texts that come from others: names, errors, the address bar. Each kind of place that they go to
 * has one function here, which escapes them so that they can only be read there.
 */

const HARMFUL = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const IS_HARMFUL = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
/* Characters without a shape: control characters, ends of lines, changes of the direction. */

const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(char) {
  const code = char.codePointAt(0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
}

/** For people: in one line, with an escape for each character that has no shape. */
export const oneLine = (text) =>
  (IS_HARMFUL.test(text) ? text.replace(HARMFUL, (char) => SHORT[char] ?? escaped(char)) : text);

/**
 * A word of a shell's command line. Characters without a shape are escaped, as a terminal acts on
 * them when the command is pasted. A shell that does not know `$'…'` takes the escapes as they
 * stand, and the quotes too, so there is no quote within.
 */
export function shellWord(text) {
  if (!IS_HARMFUL.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${text.replaceAll("\\", "\\\\").replaceAll("'", escaped).replace(HARMFUL, escaped)}'`;
}

/** A comment of a shell's script. It is quoted, as some shells have no comments where one types. */
export const shellComment = (words, text) => `# ${words}: ${shellWord(oneLine(text))}`;

/** A string of Python. */
export const pythonString = (text) =>
  `"${text.replace(/[\\"]/g, "\\$&").replace(HARMFUL, escaped)}"`;

/** The member of an object that it has itself: names such as `constructor` are in every object. */
export const own = (object, name) =>
  (object && Object.hasOwn(object, name) ? object[name] : undefined);
