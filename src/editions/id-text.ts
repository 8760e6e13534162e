import { keyToJson } from '../rows/row-json.ts';
import type { Bookmark } from '../store/bookmark.ts';

const LF = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;

/** The JSON text of a row's id, whose line begins at `start`. */
export function idTextAt(rows: Buffer, start: number): string {
  const from = rows.indexOf(COLON, start) + 1;
  let depth = 0;
  let at = from;
  for (let isInText = false; at < rows.length; at++) {
    const byte = rows[at];
    if (isInText && byte === BACKSLASH) at++;
    else if (byte === QUOTE) isInText = !isInText;
    else if (isInText) continue;
    else if (byte === 0x7b || byte === 0x5b) depth++;
    else if (depth === 0 && (byte === COMMA || byte === 0x7d)) break;
    else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return rows.toString('utf8', from, at);
}

/** The same of a key. */
export function idTextOf(key: Bookmark): string {
  const json = keyToJson(key);
  return json.slice(json.indexOf(':') + 1, -1);
}

/** The places where lines begin. */
export function* linesOf(rows: Buffer): Generator<number, void, undefined> {
  for (let at = 0; at < rows.length; at = rows.indexOf(LF, at) + 1) yield at;
}
