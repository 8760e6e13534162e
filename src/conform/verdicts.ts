/** The server does not keep a promise of the protocol. The message says what it did. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

/** This server, or this set of rows, has nothing by which a promise could be seen. The message says what is missing. */
export class Unseen extends Error {
  override readonly name = 'Unseen';
}

/** Throws Broken unless the two are the same text, number or null. */
export function expectSame(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Broken(`${what} is ${String(found)}, not ${String(expected)}`);
}
