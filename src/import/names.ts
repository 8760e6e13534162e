const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** The number of names that the objects of a JSON text give. The text must be valid JSON. */
export function namesWritten(text: string): number {
  let names = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at);
    else if (code === COLON) names++; // outside strings a colon only follows a name
  }
  return names;
}

/** The index of the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}

/**
 * The number of names in the objects of a parsed value, down to `levels` levels. It is smaller than the
 * number of names written when an object gives a name twice.
 */
export function namesKept(value: unknown, levels: number): number {
  if (value === null || typeof value !== 'object' || levels === 0) return 0;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce<number>((sum, one) => sum + namesKept(one, levels - 1), own);
}
