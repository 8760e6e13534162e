const QUOTE = 0x22;
const COMMA = 0x2c;
const LF = 0x0a;
const CR = 0x0d;

/**
 * Whether the quotes of a CSV row stand where RFC 4180 allows them. A cell either is quoted from end to end,
 * with inner quotes doubled, or has no quotes. Checking single bytes is enough: in UTF-8 these bytes never
 * occur inside another character.
 */
export function wellQuoted(row: Uint8Array): boolean {
  let at = 0;
  while (at < row.length) {
    if (row[at] === QUOTE) {
      at = endOfQuoted(row, at + 1);
      if (at < 0 || !endsCell(row[at])) return false;
    } else {
      while (!endsCell(row[at])) if (row[at++] === QUOTE) return false;
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

function endsCell(byte: number | undefined): boolean {
  return byte === COMMA || byte === LF || byte === CR || byte === undefined;
}
