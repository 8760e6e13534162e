/** The maximum lengths of a quotation and of a longer text in a message. Characters. */
const LONGEST_QUOTATION = 60;
const LONGEST_CLIPPED = 200;

/** A piece of untrusted text for a message on a terminal: quoted, clipped and without control characters. */
export function quoted(text: string): string {
  return printable(JSON.stringify(clipped(text, LONGEST_QUOTATION)));
}

/**
 * The first `most` characters of a text, for a message. A server may send megabytes. An ellipsis stands for
 * the rest.
 */
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

/** A count as people write it: `53,940`. */
export function counted(count: number): string {
  return count.toLocaleString('en-US');
}
