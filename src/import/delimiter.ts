import { UsageError } from '../terminal/arguments.ts';

/** The bytes that may separate the cells of a CSV file when the command does not say. */
const CANDIDATES: readonly (readonly [byte: number, name: string])[] = [
  [0x2c, ','],
  [0x3b, ';'],
  [0x09, 'tab'],
];
const QUOTE = 0x22;
const LF = 0x0a;
const CR = 0x0d;

/** The header row of a CSV file, from its first bytes. null when it does not end in them. */
export function headerRow(head: Buffer): Buffer | null {
  let start = 0;
  while (head[start] === LF || head[start] === CR) start++;
  let isQuoted = false;
  for (let at = start; at < head.length; at++) {
    const byte = head[at];
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (!isQuoted && (byte === LF || byte === CR)) return head.subarray(start, at);
  }
  return null;
}

/**
 * The delimiter of a header row: the only one of comma, semicolon and tab that occurs outside of quotes. A comma when
 * none does, since the file then has one column. Throws UsageError when several do: each gives other columns.
 */
export function delimiterOf(header: Buffer): string {
  const found = new Set<number>();
  let isQuoted = false;
  for (const byte of header) {
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (!isQuoted) found.add(byte);
  }
  const names = CANDIDATES.filter(([byte]) => found.has(byte)).map(([, name]) => name);
  if (names.length > 1)
    throw new UsageError(
      `the header row contains ${names.join(' and ')} outside of quotes; name the one that separates the columns with --delimiter`,
    );
  return characterOf(names[0] ?? ',');
}

/** The delimiter that the command names: one ASCII character, or `tab`. Throws UsageError for anything else. */
export function delimiterNamed(name: string): string {
  const character = characterOf(name);
  if (/^[\t\x20-\x7e]$/.test(character) && character !== '"') return character;
  throw new UsageError(
    `--delimiter takes one ASCII character, or tab, and no quote; got ${JSON.stringify(name)}`,
  );
}

function characterOf(name: string): string {
  return name === 'tab' || name === '\\t' ? '\t' : name;
}
