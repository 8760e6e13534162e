import type { DocumentWriter } from './document-writer.ts';
import { BadRow } from './row.ts';
import { hexDigit } from './simple-values.ts';

const [QUOTE, BACKSLASH, SPACE, LETTER_U] = [0x22, 0x5c, 0x20, 0x75];
/** What the letter behind a backslash stands for. */
const ESCAPES: ReadonlyMap<number, number> = new Map(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(
    ([letter, character]) => [letter.charCodeAt(0), character.charCodeAt(0)],
  ),
);

/**
 * Writes the text of a JSON string as UTF-8. `from` is behind its quote. Returns the index behind the closing quote, or
 * `~index` of the first character that JSON does not allow there. Throws BadRow for half of a surrogate pair, which
 * UTF-8 cannot encode. Bytes above 0x7f are copied unchecked.
 */
export function writeJsonText(row: Uint8Array, from: number, writer: DocumentWriter): number {
  writer.room(row.length - from);
  const { bytes } = writer;
  let { at } = writer;
  let next = from;
  for (;;) {
    const byte = row[next] ?? 0; // the end of the row is no character of a string either
    if (byte === QUOTE) break;
    if (byte < SPACE) return ~next;
    next++;
    if (byte !== BACKSLASH) {
      bytes[at++] = byte;
      continue;
    }
    const letter = row[next] ?? 0;
    if (letter !== LETTER_U) {
      const escaped = ESCAPES.get(letter);
      if (escaped === undefined) return ~next;
      bytes[at++] = escaped;
      next++;
      continue;
    }
    const code = codePointAt(row, ++next);
    if (code < 0) return ~next;
    next += code > 0xffff ? 10 : 4;
    at = putUtf8(bytes, at, code);
  }
  writer.at = at;
  return next + 1;
}

/** The character of the four digits behind `\\u`, or of these and those of a second half. -1 when they are no digits. */
function codePointAt(row: Uint8Array, at: number): number {
  const first = hexCode(row, at);
  if (first < 0xd800 || first > 0xdfff) return first;
  const hasSecond = row[at + 4] === BACKSLASH && row[at + 5] === LETTER_U;
  const second = hasSecond ? hexCode(row, at + 6) : -1;
  if (first > 0xdbff || second < 0xdc00 || second > 0xdfff)
    throw new BadRow('a text contains half of a surrogate pair');
  return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

/** The number of four hexadecimal digits. -1 when they are none. */
function hexCode(row: Uint8Array, at: number): number {
  let code = 0;
  for (let n = at; n < at + 4; n++) {
    const digit = hexDigit(row[n] ?? 0);
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

function putUtf8(bytes: Uint8Array, start: number, code: number): number {
  let at = start;
  if (code < 0x80) {
    bytes[at++] = code;
    return at;
  }
  if (code < 0x800) {
    bytes[at++] = 0xc0 | (code >> 6);
  } else {
    if (code < 0x10000) {
      bytes[at++] = 0xe0 | (code >> 12);
    } else {
      bytes[at++] = 0xf0 | (code >> 18);
      bytes[at++] = 0x80 | ((code >> 12) & 0x3f);
    }
    bytes[at++] = 0x80 | ((code >> 6) & 0x3f);
  }
  bytes[at++] = 0x80 | (code & 0x3f);
  return at;
}
