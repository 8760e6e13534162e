import { AppError } from '../../../errors.ts';

/** A place in the log of a set: behind the change with this sequence number. */
export interface LogPlace {
  /** Eight random bytes that the log of this file has, as text. */
  readonly epoch: string;
  /** The number of the set. */
  readonly set: number;
  readonly sequence: number;
}

/** The first byte of a token tells its form. MongoDB's tokens begin with other bytes. */
const VERSION = 0x4c;
const EPOCH_BYTES = 8;
const TOKEN_BYTES = 1 + EPOCH_BYTES + 4 + 8;

/** The token of a place: the form (1 byte), the epoch (8), the set (4), the sequence number (8). */
export function tokenOf({ epoch, set, sequence }: LogPlace): Uint8Array {
  const token = new Uint8Array(TOKEN_BYTES);
  const view = new DataView(token.buffer);
  token[0] = VERSION;
  token.set(Buffer.from(epoch, 'hex'), 1);
  view.setUint32(1 + EPOCH_BYTES, set);
  view.setBigUint64(TOKEN_BYTES - 8, BigInt(sequence));
  return token;
}

/** The place of a token. Throws AppError `invalid-cursor` for a token that no embedded store has made. */
export function placeOf(token: Uint8Array): LogPlace {
  if (token.length !== TOKEN_BYTES || token[0] !== VERSION)
    throw new AppError('invalid-cursor', 'The cursor is of a store of another kind.');
  const view = new DataView(token.buffer, token.byteOffset, token.length);
  return {
    epoch: Buffer.from(token.subarray(1, 1 + EPOCH_BYTES)).toString('hex'),
    set: view.getUint32(1 + EPOCH_BYTES),
    sequence: Number(view.getBigUint64(TOKEN_BYTES - 8)),
  };
}
