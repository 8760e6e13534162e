import { joinKeys, type Key } from '../../keys.ts';
import type { KeyScratch } from '../tables.ts';

/** The key of the random bytes that tell the log of this file from that of every other file. */
export const EPOCH_KEY = Buffer.from('changes');
const STATE = Buffer.from('changes of ');
const SEQUENCE_BYTES = 8;

/** The beginning of the keys of a set's records. Equal to that of the rows of a resource with this number. */
export function setKey(set: number): Key {
  const key = new Uint8Array(4);
  new DataView(key.buffer).setUint32(0, set);
  return key;
}

/** The key of the record whose last id has this sequence number. */
export function recordKey(set: number, sequence: number): Key {
  const key = new Uint8Array(4 + SEQUENCE_BYTES);
  const view = new DataView(key.buffer);
  view.setUint32(0, set);
  view.setBigUint64(4, BigInt(sequence));
  return key;
}

/** The sequence number in the key of a record. */
export function numberOf({ bytes, length }: KeyScratch): number {
  return Number(new DataView(bytes.buffer, bytes.byteOffset + length - SEQUENCE_BYTES).getBigUint64(0));
}

/** The key of the state of a set's log, in the table of the file's own data. */
export function stateKey(set: number): Key {
  return joinKeys(STATE, setKey(set));
}
