const QUOTE = 0x22;
const LF = 0x0a;
const CR = 0x0d;

/**
 * Whether the quotes of a CSV row stand where RFC 4180 allows them. A cell either is quoted from end to end,
 * with inner quotes doubled, or has no quotes. `delimiter` is the code of an ASCII character. Checking single bytes is enough: in UTF-8 these bytes never
 * occur inside another character.
 */
export function isWellQuoted(row: Uint8Array, delimiter: number): boolean {
  let at = 0;
  while (at < row.length) {
    if (row[at] === QUOTE) {
      at = endOfQuoted(row, at + 1);
      if (at < 0 || !endsCell(row[at], delimiter)) return false;
    } else {
      while (!endsCell(row[at], delimiter)) if (row[at++] === QUOTE) return false;
    }
    at++;
  }
  return true;
}

/** The index behind the closing quote. -1 when there is none. */
function endOfQuoted(row: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    const quote = row.indexOf(QUOTE, at);
    if (quote < 0) return -1;
    if (row[quote + 1] !== QUOTE) return quote + 1;
    at = quote + 2;
  }
}

function endsCell(byte: number | undefined, delimiter: number): boolean {
  return byte === delimiter || byte === LF || byte === CR || byte === undefined;
}
