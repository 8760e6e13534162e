import { createHash } from 'node:crypto';
import { isSameButHidden } from '../../same-but-hidden.ts';
import type { Equality } from '../../store.ts';
import { keyAt, keyOfNamed } from '../rows/keyed.ts';
import type { Key } from '../../keys.ts';
import type { ViewRecord } from './views.ts';

/**
 * What a change says of the row before it, to the readers of each view of the set:
 *
 * | bytes | |
 * |---|---|
 * | 4 | the number of the view |
 * | 1 | 1: the view does not show the change |
 * | 16 | a digest of the row's values before the change |
 */
const ENTRY_BYTES = 21;
const SILENT_AT = 4;
const DIGEST_AT = 5;
const DIGEST_BYTES = ENTRY_BYTES - DIGEST_AT;

/** A row that was replaced or removed, and what took its place. */
export interface RowChange {
  readonly before: Uint8Array;
  /** Null: it was removed. */
  readonly after: Uint8Array | null;
}

/** What the readers of one view learn. */
export interface BeforeInView {
  readonly isSilent: boolean;
  readonly digest: Uint8Array;
}

/** What a change says to these views. */
export function beforeOf(views: readonly ViewRecord[], { before, after }: RowChange): Uint8Array {
  const bytes = new Uint8Array(views.length * ENTRY_BYTES);
  const numbers = new DataView(bytes.buffer);
  for (const [n, { number, where, hide }] of views.entries()) {
    const at = n * ENTRY_BYTES;
    const digest = digestOfRow(before, where);
    const isSilent =
      after !== null &&
      hide.length > 0 &&
      isSameButHidden(before, after, hide) &&
      Buffer.compare(digest, digestOfRow(after, where)) === 0; // a value of the part may be hidden
    numbers.setUint32(at, number);
    bytes[at + SILENT_AT] = isSilent ? 1 : 0;
    bytes.set(digest, at + DIGEST_AT);
  }
  return bytes;
}

/** What a change says to one view. Null: it was made before the log noted that view. */
export function beforeInView(bytes: Uint8Array, view: number): BeforeInView | null {
  const numbers = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; at += ENTRY_BYTES)
    if (numbers.getUint32(at) === view)
      return {
        isSilent: bytes[at + SILENT_AT] === 1,
        digest: bytes.subarray(at + DIGEST_AT, at + ENTRY_BYTES),
      };
  return null;
}

/** The digest of a row that has these values. */
export function digestOfValues(where: readonly Equality[]): Uint8Array {
  const sorted = [...where].sort((a, b) => (a.path < b.path ? -1 : 1));
  return digestOf(sorted.map(({ value }) => keyOfNamed(value)));
}

/** Rows with an array on the way are in no part: they have a digest that no values have. */
function digestOfRow(row: Uint8Array, where: readonly string[]): Uint8Array {
  const keys: Key[] = [];
  for (const path of where) {
    const key = keyAt(row, path);
    if (typeof key === 'string') return new Uint8Array(DIGEST_BYTES);
    keys.push(key);
  }
  return digestOf(keys);
}

function digestOf(keys: readonly Key[]): Uint8Array {
  const hash = createHash('sha256');
  for (const key of keys) {
    hash.update(Uint32Array.of(key.length));
    hash.update(key);
  }
  return hash.digest().subarray(0, DIGEST_BYTES);
}
