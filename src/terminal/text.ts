/** The maximum lengths of a quotation and of a longer text in a message. Characters. */
const LONGEST_QUOTATION = 60;
const LONGEST_CLIPPED = 1_000;

/** A piece of untrusted text for a message on a terminal: quoted, clipped and without control characters. */
export function quoted(text: string): string {
  return printable(JSON.stringify(clipped(text, LONGEST_QUOTATION)));
}

/** The first `most` characters of a text, for a message: a server may send megabytes. */
export function clipped(text: string, most = LONGEST_CLIPPED): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Text without control characters. An escape sequence in a file must not reach the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** Made once: toLocaleString makes one for each call, and a line of progress has several. */
const COUNTS = new Intl.NumberFormat('en-US');

/** A count as people write it: `53,940`. */
export function counted(count: number): string {
  return COUNTS.format(count);
}

export function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

/** A count with its noun: `1 row`, `53,940 rows`. */
export function countOf(count: number, noun: string, nouns = `${noun}s`): string {
  return `${counted(count)} ${count === 1 ? noun : nouns}`;
}

/** The letters to add, remove, replace or swap with the next one that make one text of another. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let last: number[] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1),
        isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity,
      );
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}

/** An argument as a shell reads it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
