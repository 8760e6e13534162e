import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { AppError } from '../../../base/errors.ts';

/** A place in the log of a collection: behind the change with this sequence number. */
export interface LogPlace {
  /** Eight random bytes as text: the epoch of the file's history that was the latest when the place was given. */
  readonly epoch: string;
  readonly tables: number;
  readonly sequence: number;
  /**
   * The last change that the collection had: rows are looked up as they are, so those that the reader has may be of later changes
   * than the place. Not less than `sequence`.
   */
  readonly seen: number;
}

/** The first byte of a token is its form. MongoDB's tokens begin with other bytes. */
const VERSION = 0x51;
const SEALED_VERSION = 0x53;
const EPOCH_BYTES = 8;
const SET_AT = 1 + EPOCH_BYTES;
const SEQUENCE_AT = 1 + EPOCH_BYTES + 4;
/** Tokens of version 0.3 end with the sequence number. */
const OLD_TOKEN_BYTES = SEQUENCE_AT + 8;
const TOKEN_BYTES = OLD_TOKEN_BYTES + 8;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The token of a place: the form (1 byte), the epoch (8), the collection (4), the sequence number (8), the last change seen (8). */
export function tokenOf({ epoch, tables, sequence, seen }: LogPlace): Uint8Array {
  const token = new Uint8Array(TOKEN_BYTES);
  const view = new DataView(token.buffer);
  token[0] = VERSION;
  token.set(Buffer.from(epoch, 'hex'), 1);
  view.setUint32(SET_AT, tables);
  view.setBigUint64(SEQUENCE_AT, BigInt(sequence));
  view.setBigUint64(OLD_TOKEN_BYTES, BigInt(seen));
  return token;
}

/** The place of a token. Throws AppError `invalid-cursor` for a token that no embedded store has made. */
export function placeOf(token: Uint8Array): LogPlace {
  const hasSeen = token.length === TOKEN_BYTES;
  if (token[0] !== VERSION || (!hasSeen && token.length !== OLD_TOKEN_BYTES))
    throw new AppError('invalid-cursor', 'The cursor is of a store of another kind.');
  const view = new DataView(token.buffer, token.byteOffset, token.length);
  const sequence = Number(view.getBigUint64(SEQUENCE_AT));
  const seen = hasSeen ? Number(view.getBigUint64(OLD_TOKEN_BYTES)) : sequence;
  // Else the log would be asked for what is behind its end, which it takes for damage of the file.
  if (sequence > seen || !Number.isSafeInteger(seen))
    throw new AppError('invalid-cursor', 'The cursor is not one that an embedded store has given.');
  return {
    epoch: Buffer.from(token.subarray(1, 1 + EPOCH_BYTES)).toString('hex'),
    tables: view.getUint32(SET_AT),
    sequence,
    seen,
  };
}

/**
 * The token of a place for the reader of a part: the form (1 byte), a nonce (12), the sealed token of the place, the tag
 * (16). The sequence number in it counts the changes of rows that are not the reader's, so it must not be seen, guessed
 * or compared.
 */
export function sealedTokenOf(place: LogPlace, secret: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, secret, nonce);
  const sealed = Buffer.concat([cipher.update(tokenOf(place)), cipher.final()]);
  return Buffer.concat([Uint8Array.of(SEALED_VERSION), nonce, sealed, cipher.getAuthTag()]);
}

/** The place of a sealed token. Throws AppError `invalid-cursor` for a token that was not made with this secret. */
export function placeOfSealed(token: Uint8Array, secret: Uint8Array): LogPlace {
  const sealedAt = 1 + NONCE_BYTES;
  if (token[0] !== SEALED_VERSION || token.length < sealedAt + TAG_BYTES) throw notSealedHere();
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(CIPHER, secret, token.subarray(1, sealedAt), options);
  decipher.setAuthTag(token.subarray(-TAG_BYTES));
  try {
    return placeOf(Buffer.concat([decipher.update(token.subarray(sealedAt, -TAG_BYTES)), decipher.final()]));
  } catch (error) {
    throw notSealedHere(error);
  }
}

function notSealedHere(cause?: unknown): AppError {
  return new AppError(
    'invalid-cursor',
    'The cursor is not one that this store gives to the readers of a part.',
    { cause },
  );
}
