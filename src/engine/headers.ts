import type { Reply } from './edge.ts';

/** token of RFC 9110, 5.6.2, in lower case, as the port's header names are. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** field-value of RFC 9110, 5.5: no control character except HTAB. latin1, as on the wire. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The names that were found sound. They are those of the code, so they are few. */
const SOUND = new Set<string>();

/** Headers that the engine sets itself. A second one would contradict it. */
const OWNED = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding', 'upgrade']);

/** The most bytes of a reply's headers. More is a mistake, and a head and a piece of body must fit into one cork. */
const LONGEST_HEAD = 8000;

/** Returns how many bytes the headers take. Throws a TypeError that names a bad header, but not its value. */
export function checkHead({ status, headers }: Reply): number {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError(`A status is an integer of 200..599, not ${status}.`);
  }
  let bytes = 0;
  for (const name in headers) {
    const value = headers[name];
    if (!SOUND.has(name)) checkName(name);
    if (typeof value !== 'string' || !VALUE.test(value)) {
      throw new TypeError(`The value of the header ${name} has a character that no header may have.`);
    }
    bytes += name.length + value.length + 4;
  }
  if (bytes > LONGEST_HEAD) throw new TypeError(`A reply's headers may have ${LONGEST_HEAD} bytes.`);
  return bytes;
}

function checkName(name: string): void {
  if (!NAME.test(name)) throw new TypeError(`Not a header name in lower case: ${JSON.stringify(name)}.`);
  if (OWNED.has(name)) throw new TypeError(`The engine sets the header ${name}, not the reply.`);
  SOUND.add(name);
}

/** Whether the answer has no body, whatever the reply contains (RFC 9110, 6.4.1). */
export function bodiless(method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}
