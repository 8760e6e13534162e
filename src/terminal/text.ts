const SHOWN = 60;

/**
 * A piece of untrusted text for a message on a terminal: quoted, shortened and without control characters.
 */
export function quoted(text: string): string {
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return printable(JSON.stringify(shown));
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
