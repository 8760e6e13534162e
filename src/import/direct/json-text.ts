import type { DocumentWriter } from './document-writer.ts';
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
 * -1 when the string is not valid JSON or has half of a surrogate pair. Bytes above 0x7f are copied unchecked.
 */
export function writeJsonText(line: Uint8Array, from: number, writer: DocumentWriter): number {
  const { bytes } = writer;
  let { at } = writer;
  let above = 0;
  let next = from;
  for (;;) {
    const byte = line[next++] ?? 0; // the end of the line is no character of a string either
    if (byte === QUOTE) break;
    if (byte < SPACE) return -1;
    if (byte !== BACKSLASH) {
      above |= byte;
      bytes[at++] = byte;
      continue;
    }
    const letter = line[next++] ?? 0;
    if (letter !== LETTER_U) {
      const escaped = ESCAPES.get(letter);
      if (escaped === undefined) return -1;
      bytes[at++] = escaped;
      continue;
    }
    const code = codePointAt(line, next);
    if (code < 0) return -1;
    next += code > 0xffff ? 10 : 4;
    at = putUtf8(bytes, at, code);
  }
  writer.at = at;
  if (above > 0x7f) writer.isAscii = false;
  return next;
}

/** The character of the four digits behind `\u`, or of these and those of a second half. -1 for a half without the other. */
function codePointAt(line: Uint8Array, at: number): number {
  const first = hexCode(line, at);
  if (first < 0xd800 || first > 0xdfff) return first;
  if (first > 0xdbff || line[at + 4] !== BACKSLASH || line[at + 5] !== LETTER_U) return -1;
  const second = hexCode(line, at + 6);
  if (second < 0xdc00 || second > 0xdfff) return -1;
  return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

/** The number of four hexadecimal digits. -1 when they are none. */
function hexCode(line: Uint8Array, at: number): number {
  let code = 0;
  for (let n = at; n < at + 4; n++) {
    const digit = hexDigit(line[n] ?? 0);
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
