import { joinKeys, type Key } from '../../keys.ts';
import type { Merged } from './runs.ts';
import { ENTRY_HEAD_BYTES, keyLength, valueLength } from './sort.ts';

const ORDER_BYTES = 8;

/** The place of a row in its source, as the end of its key in a run: rows of one id stay in their order. */
function orderOf(at: number): Key {
  const bytes = new Uint8Array(ORDER_BYTES);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(at));
  return bytes;
}

/** The key of a row in a run: rows of one id stay in the order of their places. */
export function keyWithOrder(id: Key, at: number): Key {
  return joinKeys(id, orderOf(at));
}

/** A row of a run, copied. */
export function otherOf(entry: Merged): {
  readonly id: Key;
  readonly at: number;
  readonly document: Uint8Array;
} {
  const keyAt = entry.at + ENTRY_HEAD_BYTES;
  const valueAt = keyAt + keyLength(entry, entry.at);
  return {
    id: entry.bytes.slice(keyAt, valueAt - ORDER_BYTES),
    at: Number(entry.view.getBigUint64(valueAt - ORDER_BYTES)),
    document: entry.bytes.slice(valueAt, valueAt + valueLength(entry, entry.at)),
  };
}
